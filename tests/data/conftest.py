from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from regard.data.store import Store, StoreWriter
from regard.tokens import END

Lengths = Sequence[tuple[int, int]]
MakeStore = Callable[..., Store]


@pytest.fixture(scope="session")
def make_store(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """Write a store of random ids with the given lengths, one corpus after the other."""

    def make(*corpora: Lengths, weights: Sequence[float] = ()) -> Store:
        folder = tmp_path_factory.mktemp("stores") / "store"
        random = np.random.default_rng(7)
        with StoreWriter(folder, vocabulary="some vocabulary", vocabulary_size=1000) as writer:
            for number, lengths in enumerate(corpora):
                writer.begin_corpus(f"corpus {number}", weights[number] if weights else 1.0)
                sides = [
                    [[*random.integers(4, 1000, length - 1).tolist(), END] for length in side]
                    for side in zip(*lengths, strict=True)
                ]
                writer.add(*sides, range(1, len(lengths) + 1)) if lengths else None
        return Store.open(folder)

    return make


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real corpora that lies beside the repository on the project's own machines."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the corpora of ../shared/data")
    return folder
