"""Makes the stored model of this version's format: python tests/stored/make.py

Run once for each version of the format, by whoever raises it. The model knows nothing; what counts is that it stays
readable and gives the same translations.
"""

import random
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import regard
from regard.model_folder import FORMAT
from regard.settings import resolve
from regard.training.loop import train

HERE = Path(__file__).parent
SENTENCES = ["a 1 b", "c d 2 3 e"]


def main() -> None:
    """Train a very small model and store it with what it says."""
    folder = HERE / f"model-format-{FORMAT}"
    with TemporaryDirectory() as name:
        corpus, dice = Path(name) / "text.tsv", random.Random(1)
        lines = [" ".join(dice.choices("abcde12345", k=dice.randint(1, 6))) for _ in range(200)]
        corpus.write_text("".join(f"{line}\t{line.upper()}\n" for line in lines), encoding="utf-8")
        settings = resolve(
            {
                "model": {"d_model": 8, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
                "data": {"train": [{"pairs": corpus}], "vocabulary_size": 300},
                "training": {"steps": 150, "batch_tokens": 400, "warmup": 20, "learning_rate": 0.02},
            }
        )
        model = train(settings, Path(name) / "run", processes=1, threads=1)
        shutil.copytree(model, folder, dirs_exist_ok=True)
    found = regard.load(folder).translate(SENTENCES)
    rows = [f"{source}\t{one.text}\t{one.score:.4f}\n" for source, one in zip(SENTENCES, found, strict=True)]
    (folder / "expected.tsv").write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
