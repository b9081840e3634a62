"""What is to be run: a recipe with its changes under a name, and the commands that this means for a seed."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quality.standards import ROOT, Texts, from_root
from regard.settings import Settings, read_recipe

Command = list[str]


class ResultError(Exception):
    """A result can't be had this way; the text says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """Runs of one name, which differ in nothing but their seeds; paths are from the project's folder on."""

    name: str
    recipe: Path
    overrides: tuple[str, ...]
    train: Texts | None
    valid: Texts | None
    test: Texts | None
    tokenized: bool
    runs: Path
    trained_as: str
    """The name whose runs these are: its own, or that of runs which were tested on other text before."""
    machine_options: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> Settings:
        """The recipe's settings with their changes."""
        return read_recipe(ROOT / self.recipe, self.overrides)

    @property
    def validation(self) -> Texts:
        """The text that everything is chosen on; raises `ResultError` unless it is one pair of files."""
        if self.valid is not None:
            return self.valid
        corpora = self.settings.data.valid
        if len(corpora) != 1 or corpora[0].source is None or corpora[0].target is None:
            raise ResultError(f"{self.recipe}: validation text must be two files here; give --valid SOURCE TARGET")
        return Texts(from_root(corpora[0].source), from_root(corpora[0].target))

    def check_files(self) -> None:
        """Raise `ResultError` if text is missing, before hours are spent."""
        needed = [texts for texts in (self.train, self.validation, self.test) if texts is not None]
        missing = [str(path) for one in needed for path in (one.source, one.target) if not (ROOT / path).exists()]
        if missing:
            raise ResultError(f"not there: {', '.join(missing)}")

    def folder(self, seed: int) -> Path:
        """Return the folder of the run with this seed."""
        return self.runs / f"{self.trained_as}-{seed}"

    def train_command(self, seed: int) -> Command:
        """Return the command that trains, or goes on with it."""
        changes = [*self.overrides, f"training.seed={seed}"]
        words: list[object] = ["regard", "train", self.recipe]
        for option, texts in (("--train", self.train), ("--valid", self.valid)):
            words += [option, texts.source, texts.target] if texts else []
        words += [word for change in changes for word in ("--set", change)]
        return [str(word) for word in [*words, *self.machine_options, "--out", self.folder(seed)]]

    def evaluate_command(self, seed: int, texts: Texts, part: str) -> Command:
        """Return the command that translates and scores a text, and keeps the translations in the run's folder."""
        folder = self.folder(seed)
        words = ["regard", "evaluate", folder, texts.source, texts.target, "--output", folder / f"{part}.translated"]
        return [*map(str, words), *(["--tokenized"] if self.tokenized else []), "--json"]

    def identity(self) -> dict[str, Any]:
        """Return what all runs of this name must have in common for their mean to mean something."""
        return {
            "recipe": str(self.recipe),
            "settings": fingerprint(self.settings),
            "train": _names(self.train),
            "valid": _names(self.valid),
            "test": _names(self.test),
            "tokenized": self.tokenized,
        }


def fingerprint(settings: Settings) -> str:
    """Return a short checksum of all settings but the seed and the corpora; what is as in the paper does not count.

    So it stays when regard learns a new option that is off.
    """
    values = settings.model_dump(mode="json", exclude_defaults=True)
    values.get("training", {}).pop("seed", None)
    for name in ("train", "valid", "vocabulary"):
        values.get("data", {}).pop(name, None)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _names(texts: Texts | None) -> list[str] | None:
    return None if texts is None else [str(texts.source), str(texts.target)]
