"""A model's folder: settings, vocabulary, weights and what is known about them; written whole, read without trust.

Nothing in it is a pickle. Names and shapes of weights are compared with the settings before anything is loaded.
"""

from dataclasses import dataclass
from pathlib import Path
from shutil import copymode
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, device, nn

import regard
from regard.errors import FileFormatError, did_you_mean
from regard.files import disk_error, new_folder, read_json, read_toml, write_json
from regard.model.build import build_model
from regard.model.transformer import Transformer
from regard.settings import Settings, resolve
from regard.text.vocabulary import Vocabulary

FORMAT = 1
SETTINGS, VOCABULARY, WEIGHTS, FACTS, CARD = (
    "settings.toml",
    "vocabulary.spm",
    "weights.safetensors",
    "model.json",
    "README.md",
)
_HINTS = 20  # a guess what was meant takes long, and a stranger's file may have any number of names


@dataclass(frozen=True)
class LoadedModel:
    """Everything a model's folder holds."""

    model: Transformer
    vocabulary: Vocabulary
    settings: Settings
    facts: dict[str, Any]


def write_model(
    folder: Path,
    weights: dict[str, Tensor],
    vocabulary: Vocabulary,
    settings: Settings,
    facts: dict[str, Any],
    card: str,
) -> None:
    """Write a model's folder; what was there is replaced only when all is written.

    Raises `DiskError` if the disk is full, `UserError` if the folder can't be written.
    """
    needed = sum(weight.nbytes for weight in weights.values())
    try:
        with new_folder(folder) as path:
            save_file(weights, path / WEIGHTS)
            vocabulary.save(path / VOCABULARY)
            (path / SETTINGS).write_text(settings.to_toml(), encoding="utf-8")
            (path / CARD).write_text(card, encoding="utf-8")
            copymode(path / CARD, path / WEIGHTS)  # safetensors lets nobody but the owner read
            basics = {"format": FORMAT, "regard": regard.__version__, "vocabulary": vocabulary.fingerprint}
            write_json(path / FACTS, {**basics, **facts})
    except (OSError, SafetensorError) as error:
        raise disk_error(folder, error, needed) from error


def read_model(path: Path) -> LoadedModel:
    """Read a model from its folder, from a run's folder, or from one of a run's checkpoints."""
    folder, home = find_model(path)
    facts = read_json(home / FACTS) if (home / FACTS).exists() else {}
    if facts.get("format", FORMAT) != FORMAT:
        raise FileFormatError(
            home / FACTS, f"format {facts['format']!r} is not known to regard {regard.__version__}; update regard"
        )
    settings = read_settings(home / SETTINGS)
    vocabulary = Vocabulary.load(home / VOCABULARY)
    if facts.get("vocabulary", vocabulary.fingerprint) != vocabulary.fingerprint:
        raise FileFormatError(home / VOCABULARY, "not the vocabulary that this model was trained with")
    model = read_weights(folder / WEIGHTS, settings, len(vocabulary))
    return LoadedModel(model.eval(), vocabulary, settings, facts)


def find_model(path: Path) -> tuple[Path, Path]:
    """Return the folder with the weights and the one with settings and vocabulary; they differ for a checkpoint."""
    if not path.is_dir():
        raise FileFormatError(
            path, "no such folder" if not path.exists() else "not a folder; give a model's or a run's"
        )
    if (path / WEIGHTS).exists():
        home = path if (path / SETTINGS).exists() else path.absolute().parent.parent
        return path, home
    if (path / "model" / WEIGHTS).exists():
        return path / "model", path / "model"
    checkpoints = sorted((path / "checkpoints").glob("step-*"))
    if checkpoints:
        raise FileFormatError(
            path, f"this run has no finished model yet; go on training, or use its checkpoint {checkpoints[-1]}"
        )
    raise FileFormatError(path, f"no model here: neither {WEIGHTS} nor model/{WEIGHTS}")


def read_settings(path: Path) -> Settings:
    """Read the settings that a run or a model was written with."""
    return resolve(read_toml(path), origin=str(path), folder=path.parent)


def read_weights(path: Path, settings: Settings, vocabulary_size: int) -> Transformer:
    """Build the model that the settings describe and load its weights, after comparing names and shapes."""
    with device("meta"):
        expected = named_weights(build_model(settings.model, vocabulary_size))
    check_weights(path, {name: tuple(weight.shape) for name, weight in expected.items()})
    model = build_model(settings.model, vocabulary_size)
    load_weights(model, load_file(path))
    return model


def check_weights(path: Path, expected: dict[str, tuple[int, ...]]) -> None:
    """Raise `FileFormatError` with everything that is missing, unknown or of another shape; reads the header only."""
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError) as error:
        raise FileFormatError(path, f"not a readable safetensors file: {error}") from None
    problems = [f"misses {name}" for name in expected.keys() - found.keys()]
    unknown = sorted(found.keys() - expected.keys())
    problems += [f"unknown {name}.{did_you_mean(name, list(expected))}" for name in unknown[:_HINTS]]
    problems += [f"unknown {name}" for name in unknown[_HINTS:]]
    problems += [
        f"{name} has shape {found[name]}, the settings say {shape}"
        for name, shape in expected.items()
        if found.get(name, shape) != shape
    ]
    if problems:
        raise FileFormatError(path, "the weights do not fit the settings: " + "; ".join(sorted(problems)))


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's weights by name, each shared one once, under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights, named as `named_weights` names them, into a model."""
    for name, weight in named_weights(model).items():
        weight.copy_(weights[name])
