"""What the tests of the command line share: a runner, a corpus, a model that is trained and one that is not."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .running import TINY, Here, apart

LETTERS = "abcdefghij"


@pytest.fixture
def regard(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Run a command in this process: `regard("translate", model, stdin="…")`."""
    return Here(tmp_path_factory.mktemp("streams"), monkeypatch)


def write_corpus(folder: Path, name: str, pairs: int, seed: int) -> None:
    """Write digits, some lines of them empty, and the letters that stand for them."""
    generator = random.Random(seed)
    lines = [[generator.randrange(10) for _ in range(generator.randint(0, 6))] for _ in range(pairs)]
    (folder / f"{name}.dig").write_text("".join(f"{' '.join(map(str, line))}\n" for line in lines))
    (folder / f"{name}.let").write_text("".join(f"{' '.join(LETTERS[digit] for digit in line)}\n" for line in lines))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, valid and test, each .dig and .let."""
    folder = tmp_path_factory.mktemp("corpus")
    for seed, (name, pairs) in enumerate({"train": 600, "valid": 20, "test": 40}.items()):
        write_corpus(folder, name, pairs, seed)
    return folder


@pytest.fixture(scope="session")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder with a finished model that has learned to spell most digits."""
    out = tmp_path_factory.mktemp("runs") / "run"
    files = [str(corpus / name) for name in ("train.dig", "train.let", "valid.dig", "valid.let")]
    settings = ("training.steps=120", "training.checkpoint_steps=60", "search.extra_length=5")
    steps = [part for one in (*settings, "training.average_checkpoints=1") for part in ("--set", one)]
    ended = apart("train", "--train", *files[:2], "--valid", *files[2:], "--out", str(out), *TINY, *steps)
    assert ended.code == 0, ended.err
    return out


@pytest.fixture(scope="session")
def odd_model(tiny_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder with random weights: quick, and what it says is as odd as can be.

    Texts longer than 30 tokens are split.
    """
    from regard.model_folder import named_weights, write_model
    from regard.settings import resolve
    from regard.text.vocabulary import Vocabulary

    sizes = {"d_model": 16, "d_ff": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    settings = resolve({"model": sizes, "data": {"max_length": 30}, "search": {"extra_length": 3}})
    words = [" ".join(row) for row in zip("abcdef", "ghijkl", "123456", strict=True)]
    vocabulary = Vocabulary.train(words * 3, 300)
    model = tiny_model(len(vocabulary), seed=3, sharpness=4.0)
    folder = tmp_path_factory.mktemp("models") / "odd"
    write_model(folder, named_weights(model), vocabulary, settings, {}, "an odd model")
    return folder
