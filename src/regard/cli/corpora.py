"""Corpora named on the command line, and the settings they make together with a recipe or a preset."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import UserError
from regard.presets import PRESETS, preset_for
from regard.progress import Display
from regard.settings import Settings, read_recipe, resolve
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
        """Return the settings of the section `data` that follow from them."""
        values: dict[str, Any] = {}
        if train := _corpora(self.train_files, self.train_pairs):
            values["train"] = train
        if valid := _corpora(self.valid_files, self.valid_pairs):
            values["valid"] = valid
        guessed = guess_languages(*self.train_files) if self.train_files else None
        for name, said, place in (
            ("source_language", self.source_language, 0),
            ("target_language", self.target_language, 1),
        ):
            if said or guessed:
                values[name] = said or (guessed[place] if guessed else "")
        return values


def gather_settings(
    recipe: Path | None, options: CorpusOptions, preset: str | None, overrides: list[str], display: Display
) -> Settings:
    """Return the settings of a recipe with what the command line adds, or of a preset that suits the corpus's size."""
    data = options.values()
    if recipe is not None:
        if preset is not None:
            raise UserError('--preset goes without a recipe; in the recipe, write preset = "…" as the first line')
        base = read_recipe(recipe, overrides)
        if not data:
            return base
        return base.model_copy(update={"data": base.data.model_copy(update=_checked(data))})
    if "train" not in data:
        raise UserError("nothing to train on: give --train SOURCE TARGET, --train-pairs FILE, or a recipe")
    if preset is None:
        pairs = sum(1 for corpus in _checked(data)["train"] for _ in read_pairs(corpus))
        preset = preset_for(pairs)
        display.say(
            f"{pairs:,} training pairs: preset {preset!r} ({PRESETS[preset].purpose}); --preset chooses another"
        )
    if "valid" not in data:
        display.say("no validation text given (--valid): quality will not be measured")
    return resolve({"preset": preset, "data": data}, overrides, origin="command line")


def _corpora(files: tuple[Path, Path] | None, table: Path | None) -> list[dict[str, Path]]:
    corpora = [{"source": files[0], "target": files[1]}] if files else []
    return corpora + ([{"pairs": table}] if table else [])


def _checked(data: dict[str, Any]) -> dict[str, Any]:
    """Turn the section's values into what its fields hold."""
    section = resolve({"data": data}, origin="command line").data
    return {name: getattr(section, name) for name in data}
