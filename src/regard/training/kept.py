"""The checkpoints of a run that are kept: the newest, to go on from, and those that the average will need."""

from collections.abc import Sequence
from pathlib import Path

from regard.files import remove_leftovers
from regard.progress import Display
from regard.settings import TrainingSettings
from regard.training.average import choose_checkpoints
from regard.training.checkpoint import (
    Checkpoint,
    checkpoint_folders,
    describe_checkpoint,
    find_damage,
    remove_checkpoints,
)
from regard.training.validation import Validation


class KeptCheckpoints:
    """What is on the disk, and whole, from the newest to the oldest; known to the first process, which writes."""

    def __init__(self, folder: Path, settings: TrainingSettings) -> None:
        self._folder, self._settings = folder, settings
        self._there: list[Checkpoint] = []

    def survey(self, display: Display) -> Path | None:
        """Find the checkpoints that are whole, name those that are damaged, and return the newest."""
        remove_leftovers(self._folder)
        for path in checkpoint_folders(self._folder):
            if damage := find_damage(path):
                display.say(f"passed over a damaged checkpoint: {damage}")
            else:
                self._there.append(describe_checkpoint(path))
        return self._there[0].path if self._there else None

    def add(self, newest: Checkpoint) -> None:
        """Take in a checkpoint that was just written."""
        self._there = [newest, *(one for one in self._there if one.step != newest.step)]

    def tidy(self, validations: Sequence[Validation]) -> None:
        """Remove the checkpoints that neither going on nor the average will need."""
        rule = self._settings
        needed = choose_checkpoints(self._there, validations, rule.average, rule.average_checkpoints, rule.choose_by)
        kept = [one for one in self._there if one is self._there[0] or one in needed]
        remove_checkpoints([one for one in self._there if one not in kept])
        self._there = kept

    def describe_newest(self) -> str:
        """Say where a run could be taken up again."""
        return f"Last good checkpoint: {self._there[0].path if self._there else 'none was written yet'}"
