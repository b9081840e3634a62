"""Corpora named on the command line, and the settings they make together with a recipe or a preset."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import UserError
from regard.presets import PRESETS, preset_for
from regard.progress import Display
from regard.settings import DataSettings, Settings, parse_override, read_recipe, resolve
from regard.text.corpus import guess_languages, read_pairs


@dataclass(frozen=True)
class CorpusOptions:
    """What was said about corpora on the command line."""

    train_files: tuple[Path, Path] | None
    valid_files: tuple[Path, Path] | None
    train_pairs: Path | None
    valid_pairs: Path | None
    source_language: str | None
    target_language: str | None

    def values(self) -> dict[str, Any]:
        """Return the settings of the section `data` that say the same."""
        values = {
            "train": _corpora(self.train_files, self.train_pairs),
            "valid": _corpora(self.valid_files, self.valid_pairs),
            "source_language": self.source_language,
            "target_language": self.target_language,
        }
        return {name: value for name, value in values.items() if value}

    def guess(self) -> dict[str, str]:
        """Return the languages that the names of the training files tell."""
        guessed = guess_languages(*self.train_files) if self.train_files else None
        return dict(zip(("source_language", "target_language"), guessed or (), strict=False))


def gather_settings(
    recipe: Path | None, options: CorpusOptions, preset: str | None, overrides: list[str], display: Display
) -> Settings:
    """Return the settings of a recipe with what the command line adds, or of a preset that suits the corpus's size."""
    data = options.values()
    if recipe is not None:
        if preset is not None:
            raise UserError('--preset goes without a recipe; in the recipe, write preset = "…" as the first line')
        return _with_corpora(read_recipe(recipe, overrides), options, overrides, display)
    if "train" not in data:
        raise UserError("nothing to train on: give --train SOURCE TARGET, --train-pairs FILE, or a recipe")
    if preset is None:
        pairs = sum(1 for corpus in _data(data).train for _ in read_pairs(corpus))
        if not pairs:
            raise UserError(f"{_data(data).train[0].files[0]}: is empty; there is nothing to train on")
        preset = preset_for(pairs)
        display.say(f"{_count(pairs)}: preset {preset!r} ({PRESETS[preset].purpose}); --preset chooses another")
    settings = resolve({"preset": preset, "data": {**options.guess(), **data}}, overrides, origin="command line")
    if not settings.data.valid:
        display.say("no validation text (--valid): quality will not be measured")
    if not (settings.data.source_language and settings.data.target_language):
        display.say("languages unknown: the files' endings do not tell them; --from and --to name them")
    return settings


def given_settings(recipe: Path | None, options: CorpusOptions, overrides: list[str]) -> Settings:
    """Return what a recipe, the command line's corpora and the overrides say, and nothing else counts as given."""
    settings = read_recipe(recipe, overrides) if recipe is not None else resolve({}, overrides, origin="command line")
    data = options.values()
    told = {name: getattr(_data(data), name) for name in data}
    return settings.model_copy(update={"data": settings.data.model_copy(update=told)})


def _with_corpora(settings: Settings, options: CorpusOptions, overrides: list[str], display: Display) -> Settings:
    """Let the corpora of the command line take the place of a recipe's.

    A recipe's languages are those of its own files. So where other files tell theirs, these count; what the command
    line says counts most. Raises `UserError` if the recipe's validation text would then be of other languages.
    """
    said = options.values()
    told = {name for override in overrides for name in parse_override(override).get("data", {})}
    guessed = {name: language for name, language in options.guess().items() if name not in told}
    data = settings.data.model_copy(update={**guessed, **{name: getattr(_data(said), name) for name in said}})
    before, now = _languages(settings.data), _languages(data)
    if before != now and all(before):
        if data.valid and "valid" not in said:
            raise UserError(
                f"the recipe's validation text is {' → '.join(before)}, and this training {' → '.join(now)}: give "
                "--valid SOURCE TARGET as well; or, if the languages are the recipe's, say so by --from and --to"
            )
        display.say(f"languages: {' → '.join(now)}; the recipe's are {' → '.join(before)}")
    return settings.model_copy(update={"data": data})


def _languages(data: DataSettings) -> tuple[str, str]:
    return data.source_language, data.target_language


def _corpora(files: tuple[Path, Path] | None, table: Path | None) -> list[dict[str, Path]]:
    corpora = [{"source": files[0], "target": files[1]}] if files else []
    return corpora + ([{"pairs": table}] if table else [])


def _data(values: dict[str, Any]) -> DataSettings:
    """Turn the section's values into what its fields hold."""
    return resolve({"data": values}, origin="command line").data


def _count(pairs: int) -> str:
    return "1 training pair" if pairs == 1 else f"{pairs:,} training pairs"
