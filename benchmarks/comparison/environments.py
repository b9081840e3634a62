"""Environments for the other toolkits: one each, away from regard's own, made once and kept."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEFAULT = Path("~/.cache/regard-benchmarks").expanduser()
TORCH = "torch==2.13.0"
_STAMP = "installed"
_VERSIONS = "import importlib.metadata as m, sys, json; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"


class InstallError(Exception):
    """An environment could not be made; the text says why, in a line."""


@dataclass(frozen=True)
class Recipe:
    """What an environment holds: torch, if it is needed, then exactly what its file in `requirements/` says.

    Nothing else is resolved: some of these toolkits ask for an older torch than there is for a current Python, and
    import what they do not ask for.
    """

    name: str
    needs_torch: bool
    packages: tuple[str, ...]  # whose versions are told

    @property
    def requirements(self) -> Path:
        """The file with every package and its version."""
        return Path(__file__).parent / "requirements" / f"{self.name}.txt"

    @property
    def fingerprint(self) -> str:
        """Changes when the environment must be made anew."""
        return hashlib.sha256(f"{TORCH} {self.needs_torch} {self.requirements.read_text()}".encode()).hexdigest()


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("ctranslate2", needs_torch=False, packages=("ctranslate2",)),
        Recipe("transformers", needs_torch=True, packages=("transformers",)),
        Recipe("eole", needs_torch=True, packages=("eole",)),
        Recipe("opennmt-py", needs_torch=True, packages=("OpenNMT-py",)),
        Recipe("sockeye", needs_torch=True, packages=("sockeye",)),
    )
}


def make_environment(recipe: Recipe, folder: Path) -> Path:
    """Return the interpreter of an environment, which is made if it is not there yet or was made otherwise.

    Raises `InstallError`.
    """
    home = folder / recipe.name
    python, stamp = home / "bin" / "python", home / _STAMP
    if stamp.exists() and stamp.read_text() == recipe.fingerprint:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    _call([sys.executable, "-m", "venv", "--clear", str(home)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if recipe.needs_torch:
        _call([*install, TORCH])
    _call([*install, "--no-deps", "--requirement", str(recipe.requirements)])
    stamp.write_text(recipe.fingerprint)
    return python


def versions(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of installed packages."""
    found: dict[str, str] = json.loads(_call([str(python), "-c", _VERSIONS, *packages]))
    return found


def _call(command: list[str]) -> str:
    """Run a command without the caller's Python paths; raises `InstallError` with the last line of what it said."""
    result = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise InstallError(said[-1])
    return result.stdout


def clean_environment() -> dict[str, str]:
    """Return the environment variables without those that would let regard's environment shine through."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}
