"""A model's folder: settings, vocabulary, weights and what is known about them; written whole, read without trust.

Nothing in it is a pickle. Names, shapes and types of weights are compared with the settings, and their size with the
memory, before anything is loaded. No file outside of the folder is read.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from shutil import copymode
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, device, nn

import regard
from regard.errors import FileFormatError, did_you_mean
from regard.files import disk_error, new_folder, open_file, read_json, read_toml, write_json
from regard.model.build import build_model
from regard.model.quantize import Rounded, restore_rows, round_rows
from regard.model.transformer import Transformer
from regard.settings import Settings, resolve
from regard.shortlist import Shortlist
from regard.system import memory_total
from regard.text.vocabulary import Vocabulary

FORMAT = 1
SETTINGS, VOCABULARY, WEIGHTS, FACTS, CARD = (
    "settings.toml",
    "vocabulary.spm",
    "weights.safetensors",
    "model.json",
    "README.md",
)
SHORTLIST = "shortlist.safetensors"  # if there is one
_TOLD = 20  # a stranger's file may have any number of names that do not fit
_TYPES = {"F32", "F16", "BF16", "F64"}
_SCALE = ".scale"  # what follows a matrix's name in that of its rows' scales, if its numbers are rounded to eight bits


@dataclass(frozen=True)
class LoadedModel:
    """Everything a model's folder holds."""

    model: Transformer
    vocabulary: Vocabulary
    settings: Settings
    facts: dict[str, Any]

    @property
    def is_rounded(self) -> bool:
        """Say whether the weights were rounded to eight bits."""
        return self.facts.get("precision") == "int8"


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
    _check_links(path if home == folder else home, [folder / WEIGHTS, home / SETTINGS, home / VOCABULARY, home / FACTS])
    facts = _read_facts(home / FACTS) if (home / FACTS).exists() else {}
    settings = read_settings(home / SETTINGS)
    vocabulary = Vocabulary.load(home / VOCABULARY)
    if facts.get("vocabulary", vocabulary.fingerprint) != vocabulary.fingerprint:
        raise FileFormatError(home / VOCABULARY, "not the vocabulary that this model was trained with")
    rounded = facts.get("precision") == "int8" and folder == home
    model = read_weights(folder / WEIGHTS, settings, len(vocabulary), rounded)
    return LoadedModel(model.eval(), vocabulary, settings, facts)


def read_shortlist(path: Path, vocabulary: Vocabulary) -> Shortlist:
    """Read the shortlist of a model that is found as `read_model` finds it; raises `FileFormatError` if it has none."""
    folder, home = find_model(path)
    if not (home / SHORTLIST).exists():
        raise FileFormatError(path, f"this model has no shortlist; make one with 'regard shortlist {path}'")
    _check_links(path if home == folder else home, [home / SHORTLIST])
    return Shortlist.load(home / SHORTLIST, vocabulary)


def _check_links(root: Path, files: Sequence[Path]) -> None:
    """Refuse links that lead out of a folder: it may be a stranger's, who has no say in what else is read."""
    inside = Path(os.path.realpath(root))
    for file in files:
        if inside not in Path(os.path.realpath(file)).parents:
            raise FileFormatError(file, f"is a link that leads out of {root}; put the file itself there")


def _read_facts(path: Path) -> dict[str, Any]:
    facts = read_json(path, largest=1 << 20)
    if facts.get("format", FORMAT) != FORMAT:
        raise FileFormatError(
            path, f"format {facts['format']!r} is not known to regard {regard.__version__}; update regard"
        )
    longest = facts.get("longest_source")
    if longest is not None and (type(longest) is not int or longest < 1):
        raise FileFormatError(path, "longest_source is not a number of subwords")
    if facts.get("precision", "float32") not in ("float32", "int8"):
        raise FileFormatError(path, f"precision {facts['precision']!r} is not known; update regard")
    return facts


def find_model(path: Path) -> tuple[Path, Path]:
    """Return the folder with the weights and the one with settings and vocabulary; they differ for a checkpoint."""
    if not path.is_dir():
        raise FileFormatError(
            path, "no such folder" if not path.exists() else "not a folder; give a model's or a run's"
        )
    if (path / WEIGHTS).exists():
        above = path.absolute().parent
        is_checkpoint = above.name == "checkpoints" and not (path / SETTINGS).exists()
        return path, above.parent if is_checkpoint else path
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


def read_weights(path: Path, settings: Settings, vocabulary_size: int, rounded: bool = False) -> Transformer:
    """Build the model that the settings describe and load its weights, after comparing names, shapes and types."""
    with device("meta"):
        expected = named_weights(build_model(settings.model, vocabulary_size))
    shapes = {name: tuple(weight.shape) for name, weight in expected.items()}
    scales = {f"{name}{_SCALE}": shape[:1] for name, shape in shapes.items() if rounded and len(shape) == 2}
    check_weights(path, shapes | scales)
    _check_memory(path, 4 * sum(map(prod, shapes.values())))
    model = build_model(settings.model, vocabulary_size)
    load_weights(model, restore_weights(load_file(path)))
    broken = [name for name, weight in named_weights(model).items() if not weight.isfinite().all()]
    if broken:
        raise FileFormatError(path, f"damaged: not all numbers are finite in {_list(broken)}")
    return model


def check_weights(path: Path, expected: dict[str, tuple[int, ...]]) -> None:
    """Raise `FileFormatError` with what is missing, unknown or of another shape or type; reads the header only."""
    try:
        with open_file(path) as plain:
            header = int.from_bytes(plain.read(8), "little")
            _check_memory(path, os.fstat(plain.fileno()).st_size)
        if header > (1 << 20) + 1000 * len(expected):
            raise FileFormatError(path, f"its header says that it has {header:,} bytes, too many for this model")
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            found = {name: (tuple(one.get_shape()), one.get_dtype()) for name, one in slices.items()}
    except (OSError, SafetensorError, MemoryError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or error
        raise FileFormatError(path, f"not a readable safetensors file: {problem}") from None
    problems = [f"misses {name}" for name in sorted(expected.keys() - found.keys())]
    unknown = sorted(found.keys() - expected.keys())
    problems += [f"unknown {name}.{did_you_mean(name, list(expected))}" for name in unknown[:_TOLD]]
    problems += unknown[_TOLD:]  # counted, not told
    for name in sorted(expected.keys() & found.keys()):
        shape, kind = found[name]
        if shape != expected[name]:
            problems.append(f"{name} has shape {shape}, the settings say {expected[name]}")
        if kind not in ({"I8"} if f"{name}{_SCALE}" in expected else _TYPES):
            problems.append(f"{name} has type {kind}, which weights do not have")
    if problems:
        raise FileFormatError(path, f"the weights do not fit the settings: {_list(problems)}")


def _check_memory(path: Path, needed: int) -> None:
    available = memory_total()  # 0 where the system does not tell
    if needed > available > 0:
        raise FileFormatError(path, f"needs {needed / 1e9:,.1f} GB of memory; here are {available / 1e9:,.1f}")


def _list(problems: Sequence[str]) -> str:
    more = [f"and {len(problems) - _TOLD:,} more"] if len(problems) > _TOLD else []
    return "; ".join([*problems[:_TOLD], *more])


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's weights by name, each shared one once, under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def round_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights as a rounded model keeps them: matrices in eight bits, each with its rows' scales."""
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() == 2:
            stored[name], stored[f"{name}{_SCALE}"] = round_rows(weight)
        else:
            stored[name] = weight
    return stored


def restore_weights(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that were stored, those in eight bits as the numbers that they stand for."""
    weights = {}
    for name, tensor in stored.items():
        scale = stored.get(f"{name}{_SCALE}")
        weights[name] = tensor if scale is None else restore_rows(Rounded(tensor, scale))
    return weights


def load_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights, named as `named_weights` names them, into a model."""
    for name, weight in named_weights(model).items():
        weight.copy_(weights[name])
