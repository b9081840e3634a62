"""Make the model in this folder: format 1, a translator that copies digits, as small as it can be.

It was made once, by regard 0.1.0, and is kept so that later versions are tested to read it. Do not make it anew when
the format changes: add a folder for the new format instead. From the repository's root:

    OMP_NUM_THREADS=1 python tests/data/model-format-1/make.py
"""

import shutil
import sys
from pathlib import Path

from regard.training.loop import train
from regard.translator import load

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "training"))
from digits import recipe, write_corpus  # noqa: E402

SENTENCES = ["3 1 4 1", "2 7 1"]

if __name__ == "__main__":
    work = Path("/tmp/regard-model-format-1")
    shutil.rmtree(work, ignore_errors=True)
    corpus = write_corpus(work / "corpus", sizes={"train": 3000, "valid": 20}, lengths=(2, 4))
    settings = recipe(
        corpus,
        model={"d_model": 8, "d_ff": 32, "heads": 2, "dropout": 0.0},
        steps=1500,
        batch_tokens=400,
        micro_batch_tokens=400,
        warmup=200,
        learning_rate=0.02,
        log_steps=100,
        checkpoint_steps=500,
        average_checkpoints=1,
    )
    model = train(settings, work / "run", device="cpu", processes=1, threads=1)
    shutil.rmtree(HERE / "model", ignore_errors=True)
    shutil.copytree(model, HERE / "model")
    found = load(HERE, device="cpu", threads=1).translate(SENTENCES)
    (HERE / "expected.tsv").write_text("".join(f"{one.source}\t{one.text}\t{one.score:.4f}\n" for one in found))
