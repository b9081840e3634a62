"""What each recipe is held against: its test set, what others have published for it, and what is to be reached."""

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Texts:
    """Two files, line by line each other's translation; paths are from the project's folder on."""

    source: Path
    target: Path

    @property
    def title(self) -> str:
        """The folder, and what the two names have in common."""
        both = zip(self.source.name.split("."), self.target.name.split("."), strict=False)
        return f"{self.source.parent.name}/{'.'.join(one for one, other in both if one == other)}"


@dataclass(frozen=True)
class Standard:
    """A recipe's test set, and the BLEU that is known for it."""

    test: Texts
    tokenized: bool = False
    published: str = ""
    at_least: float | None = None
    aim: float | None = None


def _texts(stem: str, source: str = "en", target: str = "de") -> Texts:
    return Texts(Path(f"data/{stem}.{source}"), Path(f"data/{stem}.{target}"))


_FLICKR = "multi30k/test_2016_flickr"

STANDARDS = {
    # Wu and others 2021, one run: their Transformer-Tiny, and the best of their models that see the picture as well.
    Path("recipes/multi30k-en-de-paper.toml"): Standard(
        _texts(f"{_FLICKR}.lc.tok"), tokenized=True, published="41.02", at_least=40.7, aim=41.02
    ),
    Path("recipes/multi30k-en-de.toml"): Standard(
        _texts(f"{_FLICKR}.lc.tok"), tokenized=True, published="41.02; with images 41.96", at_least=41.96, aim=43.0
    ),
    Path("recipes/multi30k-en-de-raw.toml"): Standard(_texts(_FLICKR)),
    Path("recipes/tatoeba-en-de.toml"): Standard(_texts("tatoeba/test")),
    # Table 2 of the paper. They can't be trained without GPUs.
    Path("recipes/wmt14-en-de-base.toml"): Standard(_texts("wmt14-en-de/test"), published="27.3, the paper's BLEU"),
    Path("recipes/wmt14-en-de-big.toml"): Standard(_texts("wmt14-en-de/test"), published="28.4, the paper's BLEU"),
    Path("recipes/wmt14-en-fr-big.toml"): Standard(
        _texts("wmt14-en-fr/test", target="fr"), published="41.8, the paper's BLEU"
    ),
}


def from_root(path: Path) -> Path:
    """Return a path as it is seen from the project's folder, where all commands are run; one outside is absolute.

    Links stay as they are: `data` may be one.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - Path has nothing that goes up and follows no link
    return absolute.relative_to(ROOT) if absolute.is_relative_to(ROOT) else absolute
