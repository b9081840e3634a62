"""Pictures as files: attention weights, alignments and the course of a training.

Figures are made without pyplot, so nothing is kept between calls and no window system is needed. The same numbers give
the same bytes.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from math import ceil, isfinite, sqrt
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from regard.attention_maps import (
    KINDS,
    AttentionMaps,
    Floats,
    Kind,
    align,
    alignment_layers,
    alignment_weights,
    group_words,
    words_alignment,
)

_TITLES: dict[Kind, tuple[str, str]] = {
    "encoder": ("Encoder self-attention", "each source token (row) looks at the source (columns)"),
    "decoder": ("Decoder self-attention", "each target token (row) looks at the target so far (columns)"),
    "cross": ("Cross attention", "each target token, as it is written (row), looks at the source (columns)"),
}
_INK, _FAINT, _FRAME, _LINE, _UNSEEN = "#222222", "#6f6f6f", "#b5b5b5", "#ececec", "#eeeeee"
_MARGIN, _GAP, _HEADROOM, _BAR = 0.2, 0.3, 0.8, 0.65  # inches
# DejaVu Sans comes with matplotlib; the others, where they are installed, have what it lacks.
_FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Arial Unicode MS", "Yu Gothic")
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


# ---- attention -------------------------------------------------------------------------------------------------------


def draw_attention(maps: AttentionMaps, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Draw every layer, an overview of each kind, and the alignment into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in KINDS:
        files += _save(_draw_overview(maps, kind), folder / f"{kind}-overview", formats)
        for layer in range(len(maps.weights(kind))):
            files += _save(_draw_layer(maps, kind, layer), folder / f"{kind}-layer-{layer + 1}", formats)
    return files + _save(_draw_alignment(maps), folder / "alignment", formats)


def _draw_layer(maps: AttentionMaps, kind: Kind, layer: int) -> Figure:
    """All heads of a layer side by side, with the tokens along their edges."""
    weights = maps.weights(kind)[layer]  # (H, rows, columns)
    heads, rows, columns = weights.shape
    row_labels, column_labels = _labels(maps.rows(kind)), _labels(maps.columns(kind))
    cell = _cell_size(max(rows, columns))
    font = min(10.0, cell * 72 * 0.72)
    left, top = _MARGIN + _width(row_labels, font), _width(column_labels, font) + 0.32
    width, height, across = columns * cell, rows * cell, _columns_of(heads)
    title, subtitle = _TITLES[kind]
    sheet = _Sheet(
        left + across * (width + _GAP) + _BAR,
        _HEADROOM + ceil(heads / across) * (top + height + _GAP),
        f"{title}, layer {layer + 1} of {len(maps.weights(kind))}",
        subtitle,
        resolution=150 if rows <= 30 else 120,
    )
    for head in range(heads):
        down, right = divmod(head, across)
        x, y = left + right * (width + _GAP), _HEADROOM + top + down * (top + height + _GAP)
        sheet.add_panel(x, y, weights[head], cell, cell, causal=kind == "decoder")
        sheet.add_column_labels(x, y, column_labels, cell, font)
        if right == 0:
            sheet.add_row_labels(x, y, row_labels, cell, font)
        sheet.add_text(x, y - top + 0.12, f"head {head + 1}", 10, _FAINT)
    sheet.add_bar(left + across * (width + _GAP), _HEADROOM + top, min(height, 2.5))
    return sheet.figure


def _draw_overview(maps: AttentionMaps, kind: Kind) -> Figure:
    """Every head of every layer as a small picture without tokens: layers from top to bottom."""
    weights = maps.weights(kind)
    layers, heads, rows, columns = weights.shape
    cell = 1.3 / max(rows, columns)
    # A panel keeps some room for its title, however short the sentence is.
    cell_width, cell_height = max(cell, 0.6 / columns), max(cell, 0.6 / rows)
    width, height, gap = columns * cell_width, rows * cell_height, 0.13
    left, top = 0.9, _HEADROOM + 0.3
    title, subtitle = _TITLES[kind]
    sheet = _Sheet(left + heads * (width + gap) + _BAR, top + layers * (height + gap) + 0.1, title, subtitle)
    for layer in range(layers):
        y = top + layer * (height + gap)
        sheet.add_text(left - 0.1, y + height / 2, f"layer {layer + 1}", 9, _FAINT, ha="right")
        for head in range(heads):
            x = left + head * (width + gap)
            shown = weights[layer, head]
            sheet.add_panel(x, y, shown, cell_width, cell_height, causal=kind == "decoder", lines=False)
            if layer == 0:
                sheet.add_text(x + width / 2, y - 0.12, f"head {head + 1}", 9, _FAINT, ha="center")
    sheet.add_bar(left + heads * (width + gap) + 0.05, top, min(2.5, layers * (height + gap) - gap))
    return sheet.figure


def _draw_alignment(maps: AttentionMaps) -> Figure:
    """Target words against source words, with a ring on every point of the alignment."""
    weights = alignment_weights(maps.cross)  # (T, S)
    source_of, target_of = group_words(maps.source_tokens), group_words(maps.predicted_tokens)
    points = words_alignment(align(weights), source_of, target_of)
    by_word = _merge(weights, target_of, source_of)[:-1]  # without the end token's row, which nothing is aligned with
    row_labels = _labels(_words(maps.predicted_tokens, target_of)[:-1], longest=26)
    column_labels = _labels(_words(maps.source_tokens, source_of), longest=26)
    rows, columns = by_word.shape
    cell = _cell_size(max(rows, columns))
    font = min(11.0, cell * 72 * 0.72)
    left, top = _MARGIN + _width(row_labels, font), _HEADROOM + _width(column_labels, font)
    layers = ", ".join(str(layer + 1) for layer in alignment_layers(len(maps.cross)))
    sheet = _Sheet(
        left + columns * cell + _GAP + _BAR,
        top + max(rows * cell, 1.0) + _MARGIN,
        "Alignment",
        f"each target word (row) and the source words it looks at: mean of all heads of layer {layers}; ○ aligned",
    )
    if rows:
        sheet.add_panel(left, top, by_word, cell, cell)
        sheet.add_column_labels(left, top, column_labels, cell, font)
        sheet.add_row_labels(left, top, row_labels, cell, font)
    for source, target in points:
        colour = "white" if by_word[target, source] > 0.4 else _INK
        sheet.add_ring(left + (source + 0.5) * cell, top + (target + 0.5) * cell, cell, colour)
    sheet.add_bar(left + columns * cell + _GAP, top, min(max(rows * cell, 1.0), 2.5))
    return sheet.figure


def _merge(weights: Floats, row_groups: Sequence[int], column_groups: Sequence[int]) -> Floats:
    """Average the rows and add up the columns of each word, so that rows still sum to 1."""
    rows = np.eye(row_groups[-1] + 1)[list(row_groups)].T  # (words, tokens)
    columns = np.eye(column_groups[-1] + 1)[list(column_groups)]  # (tokens, words)
    merged: Floats = (rows / rows.sum(1, keepdims=True)) @ weights @ columns
    return merged


def _words(tokens: Sequence[str], groups: Sequence[int]) -> list[str]:
    """Join the tokens of each word, with its bytes read as the characters they stand for."""
    words = [""] * (groups[-1] + 1)
    for token, group in zip(tokens, groups, strict=True):
        words[group] += token

    def read(found: re.Match[str]) -> str:
        return bytes.fromhex(found[0].replace("<0x", "").replace(">", "")).decode("utf-8", "replace")

    return [re.sub("(?:<0x[0-9A-F]{2}>)+", read, word).removeprefix("▁") for word in words]


# ---- training --------------------------------------------------------------------------------------------------------


def draw_training(
    steps: Sequence[int],
    losses: Sequence[float],
    validation: Sequence[tuple[int, float, float | None]],
    path: Path,
) -> Path:
    """Draw training loss, and validation's (step, loss, BLEU or None), into a file; return its path."""
    colours = {"training loss": "#9aa5ce", "validation loss": "#8c2981", "validation BLEU (right)": "#e0651a"}
    measured = [(step, bleu) for step, _, bleu in validation if bleu is not None]
    if not measured:
        del colours["validation BLEU (right)"]
    figure = Figure(figsize=(7.5, 4.2), dpi=150)
    axes = figure.add_axes((0.09, 0.13, 0.82, 0.74))
    axes.plot(steps, losses, color=colours["training loss"], linewidth=1.2)
    style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.6}
    axes.plot([step for step, *_ in validation], [v[1] for v in validation], color=colours["validation loss"], **style)
    # Five steps on either side, so that one set of lines serves both.
    axes.set_yticks(_five_steps([*losses, *(loss for _, loss, _ in validation)], unit=0.5))
    axes.set_xlim(left=0)
    axes.set_xlabel("step", color=_FAINT, family=_families())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    sides = [axes]
    if measured:
        sides.append(axes.twinx())
        sides[1].plot(*zip(*measured, strict=True), color=colours["validation BLEU (right)"], **style)
        sides[1].set_yticks(_five_steps([bleu for _, bleu in measured], unit=5))
    for side in sides:
        side.set_ylim(0, side.get_yticks()[-1])
        side.spines[:].set_visible(False)
        side.tick_params(length=0, labelcolor=_FAINT, labelsize=9, labelfontfamily=_families())
    axes.spines["bottom"].set(visible=True, color=_FRAME)
    heading: dict[str, Any] = {"family": _families(), "va": "center"}
    figure.text(0.09, 0.95, "Training", fontsize=13, fontweight="bold", color=_INK, **heading)
    for place, (name, colour) in enumerate(colours.items()):
        figure.text(0.27 + 0.2 * place, 0.95, f"●  {name}", fontsize=9.5, color=colour, **heading)
    path.parent.mkdir(parents=True, exist_ok=True)
    return _save(figure, path.with_suffix(""), [path.suffix.removeprefix(".") or "png"])[0]


def _five_steps(values: Iterable[float], unit: float) -> Floats:
    largest = max((value for value in values if isfinite(value)), default=0.0)
    return np.arange(6) * unit * max(1, ceil(largest / 5 / unit))


# ---- the sheet -------------------------------------------------------------------------------------------------------


class _Sheet:
    """A figure with a title, addressed in inches from its top left corner.

    One set of axes without ticks holds everything: matplotlib's ticks take most of a second for each panel.
    """

    def __init__(self, width: float, height: float, title: str, subtitle: str, resolution: int = 150) -> None:
        width = max(width, 2 * _MARGIN + _width([title], 15), 2 * _MARGIN + _width([subtitle], 9.5))
        self.figure = Figure(figsize=(width, height), dpi=resolution)
        self._axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0), autoscale_on=False)
        self._axes.set_axis_off()
        self.add_text(_MARGIN, 0.27, title, 13, _INK, fontweight="bold")
        self.add_text(_MARGIN, 0.52, subtitle, 9.5, _FAINT)

    def add_text(self, x: float, y: float, text: str, size: float, colour: str, **options: Any) -> None:
        """Write text, centred on its line; `$` is a character like others, not the start of a formula."""
        style = {"va": "center", "fontsize": size, "color": colour, "family": _families(), "parse_math": False}
        self._axes.text(x, y, text, **{**style, **options})

    def add_panel(
        self,
        x: float,
        y: float,
        weights: Floats,
        width: float,
        height: float,
        *,
        causal: bool = False,
        lines: bool = True,
    ) -> None:
        """Show weights as cells of a size; what a causal row may not see is grey."""
        rows, columns = weights.shape
        unseen = np.triu(np.ones((rows, columns), dtype=bool), 1) if causal else np.zeros((rows, columns), dtype=bool)
        cells = np.ma.masked_array(weights.astype(np.float64), unseen)
        right, bottom = x + columns * width, y + rows * height
        extent = (x, right, bottom, y)
        self._axes.imshow(cells, cmap=_colours(), vmin=0, vmax=1, interpolation="none", aspect="auto", extent=extent)
        if lines:
            across = [[(x, y + row * height), (right, y + row * height)] for row in range(1, rows)]
            down = [[(x + column * width, y), (x + column * width, bottom)] for column in range(1, columns)]
            self._axes.add_collection(LineCollection(across + down, colors=_LINE, linewidths=0.4), autolim=False)
        frame = [[(x, y), (right, y), (right, bottom), (x, bottom), (x, y)]]
        self._axes.add_collection(LineCollection(frame, colors=_FRAME, linewidths=0.7), autolim=False)

    def add_row_labels(self, x: float, y: float, labels: Sequence[str], cell: float, size: float) -> None:
        """Write a label to the left of each row of a panel at (x, y)."""
        for row, label in enumerate(labels):
            self.add_text(x - 0.06, y + (row + 0.5) * cell, label, size, _INK, ha="right", va="center_baseline")

    def add_column_labels(self, x: float, y: float, labels: Sequence[str], cell: float, size: float) -> None:
        """Write a label upwards over each column of a panel at (x, y)."""
        upwards = {"rotation": 90, "ha": "center", "va": "bottom"}
        for column, label in enumerate(labels):
            self.add_text(x + (column + 0.5) * cell, y - 0.06, label, size, _INK, **upwards)

    def add_ring(self, x: float, y: float, cell: float, colour: str) -> None:
        """Mark a cell by its middle."""
        self._axes.plot([x], [y], "o", ms=cell * 72 * 0.42, mfc="none", mec=colour, mew=max(0.8, cell * 4))

    def add_bar(self, x: float, y: float, height: float) -> None:
        """Show which colour is which weight."""
        self.add_panel(x, y, np.linspace(1, 0, 128)[:, None], 0.13, height / 128, lines=False)
        for share in (0, 0.5, 1):
            self.add_text(x + 0.2, y + (1 - share) * height, f"{share:g}", 8, _FAINT)


def _save(figure: Figure, stem: Path, formats: Sequence[str]) -> list[Path]:
    files = [stem.with_name(f"{stem.name}.{ending}") for ending in formats]
    # Neither a date nor random names inside; and letters as letters, so that a token can be searched for.
    with matplotlib.rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        for file in files:
            figure.savefig(file, facecolor="white", metadata=_UNDATED.get(file.suffix))
    return files


@cache
def _colours() -> Colormap:
    """Magma from white: perceptually even, dark where the weight is, and the paper where it is not."""
    colours = matplotlib.colormaps["magma_r"](np.linspace(0, 0.95, 256))
    fade = np.clip(np.arange(256) / 40, 0, 1)[:, None]
    return ListedColormap(colours * fade + 1 - fade, name="magma_from_white").with_extremes(bad=_UNSEEN)


def _columns_of(heads: int) -> int:
    """How many heads stand side by side: wider than high, without gaps where the number allows it."""
    wanted = ceil(sqrt(heads))
    return next((columns for columns in range(wanted, 2 * wanted + 1) if heads % columns == 0), wanted)


def _cell_size(tokens: int) -> float:
    """A token's width in inches: generous for short sentences, just readable for long ones."""
    return float(np.clip(6.0 / max(tokens, 1), 0.13, 0.34))


# ---- text in pictures ------------------------------------------------------------------------------------------------


def _labels(tokens: Sequence[str], longest: int = 16) -> list[str]:
    """Return tokens as they can be drawn: what no font has is escaped, and very long ones are shortened."""
    drawable = ["".join(map(_drawable, token.replace("▁", "·"))) for token in tokens]
    return [label if len(label) <= longest else label[: longest - 1] + "…" for label in drawable]


def _drawable(character: str) -> str:
    if character.isprintable() and ord(character) in _glyphs():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def _width(labels: Sequence[str], size: float) -> float:
    """How many inches the widest label takes."""
    font = FontProperties(family=_families(), size=size)
    return (
        0.08
        + max((text_to_path.get_text_width_height_descent(label, font, False)[0] for label in labels), default=0) / 72
    )


@cache
def _families() -> list[str]:
    installed = {font.name for font in fontManager.ttflist}
    return [name for name in _FONTS if name in installed]


@cache
def _glyphs() -> frozenset[int]:
    """The code points that the installed fonts of `_FONTS` can draw."""
    paths = [findfont(FontProperties(family=name)) for name in _families()]
    return frozenset(code for path in paths for code in get_font(path).get_charmap())
