from collections.abc import Callable
from pathlib import Path

import pytest
from digits import Words, recipe, write_corpus

from regard.data.prepare import Prepared, prepare
from regard.machine import Machine, choose_machine
from regard.progress import QuietDisplay


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of digits, to be copied."""
    return write_corpus(tmp_path_factory.mktemp("corpora") / "copy")


@pytest.fixture(scope="session")
def prepared(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The corpus as training sees it."""
    return prepare(recipe(corpus), tmp_path_factory.mktemp("prepared"), QuietDisplay())


@pytest.fixture(scope="session")
def machine() -> Machine:
    return choose_machine("cpu", "float32", threads=1)


@pytest.fixture
def words() -> Words:
    """A display that remembers what was said."""
    return Words()


@pytest.fixture(scope="session")
def finished_run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing disturbed, with the usual settings; for reading only."""
    from regard.training.loop import train

    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(recipe(corpus), out, display=QuietDisplay(), processes=1, threads=1)
    return out


@pytest.fixture(scope="session")
def dropless_run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without dropout, whose draws depend on who computes: torch or the compiled library."""
    from regard.training.loop import train

    out = tmp_path_factory.mktemp("runs") / "dropless"
    train(recipe(corpus, model={"dropout": 0.0}), out, display=QuietDisplay(), processes=1, threads=1)
    return out


MakeRun = Callable[..., Path]


@pytest.fixture
def stopped_run(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """A function that trains in a new folder and lets the process "die" right after the checkpoint of a step."""
    from regard.training import loop

    class DiesError(BaseException):
        pass

    def run(step: int, name: str = "stopped", **training: object) -> Path:
        whole = loop.Training.write_checkpoint

        def write_and_die(self: loop.Training, regular: bool) -> None:
            whole(self, regular)
            if self.state.step >= step:
                raise DiesError

        out = tmp_path / name
        with monkeypatch.context() as patch, pytest.raises(DiesError):  # noqa: PT012
            patch.setattr(loop.Training, "write_checkpoint", write_and_die)
            loop.train(recipe(corpus, **training), out, display=QuietDisplay(), processes=1, threads=1)
        return out

    return run
