"""The tree of exceptions: everything regard raises on purpose derives from `RegardError`.

A message says what is wrong, where (a file and line, or a setting's path) and what to do about it. The command line
prints the message alone: exit code 2 for the user's mistake (`UserError`), 1 for everything else.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path


class RegardError(Exception):
    """Anything regard raises on purpose."""


class UserError(RegardError):
    """A mistake in what the user gave: an option, a setting, a file."""


class SettingsError(UserError):
    """One or several mistakes in a recipe or an override; `problems` holds one sentence for each."""

    def __init__(self, origin: str, problems: Sequence[str]) -> None:
        self.origin = origin
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{origin}: {_counted(len(problems), 'mistake')}", *(f"  {p}" for p in problems)]))


class CorpusError(UserError):
    """A text file that can't be used as it is, with the file and, where there is one, the line."""

    def __init__(self, path: Path | str, line: int | None, problem: str) -> None:
        self.path = Path(path)
        self.line = line
        where = str(path) if line is None else f"{path}, line {line:,}"
        super().__init__(f"{where}: {problem}")


class FileFormatError(UserError):
    """A file of ours (model, checkpoint, token store, vocabulary) that is damaged, missing or of an unknown version."""

    def __init__(self, path: Path | str, problem: str) -> None:
        self.path = Path(path)
        super().__init__(f"{path}: {problem}")


class MissingExtraError(UserError):
    """An optional dependency that is not installed, with the line that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed: pip install 'regard[{extra}]'")


class DiskError(RegardError):
    """A disk that takes no more, or that fails; nobody's mistake."""


class FetchError(RegardError):
    """A file that could not be fetched: no connection, a refusal, or not the file that it should be."""


class TrainingError(RegardError):
    """A training that can't go on, with the last good checkpoint named where there is one."""


class ProcessError(RegardError):
    """One of several processes that work together has failed, or is lost."""


class LostOthersError(ProcessError):
    """Another process has ended, or has been silent for too long, while this one waited for it."""


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return " Did you mean …?" with the closest known word, or an empty string if none is close."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
