"""Who looks at whom: what each attention head does, and which words translate which.

Works on arrays and never imports torch; `draw` and `draw_curve` hand over to `regard.pictures`.

Shapes: L layers, H heads, S source length, T target length. Both lengths count the end token.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

Floats: TypeAlias = NDArray[np.floating]
Mask: TypeAlias = NDArray[np.bool_]
Kind: TypeAlias = Literal["encoder", "decoder", "cross"]
Point: TypeAlias = tuple[int, int]
"""(source, target) of an alignment, counted from 0."""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """All attention weights of one sentence pair; each row of the last two axes is a distribution.

    Raises `RegardError` if the arrays don't fit the tokens.
    """

    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    """What the decoder was fed, beginning with the start token."""
    predicted_tokens: tuple[str, ...]
    """What it predicted at each position, ending in the end token."""
    encoder: Floats
    """(L, H, S, S): the source's positions look at each other."""
    decoder: Floats
    """(L, H, T, T): the target's positions look at themselves and to the left."""
    cross: Floats
    """(L, H, T, S): the target's positions look at the source."""

    def __post_init__(self) -> None:
        if len(self.target_tokens) != len(self.predicted_tokens):
            fed, predicted = len(self.target_tokens), len(self.predicted_tokens)
            raise RegardError(f"attention maps: {fed} tokens fed to the decoder, {predicted} predicted")
        for kind in KINDS:
            weights, expected = self.weights(kind), (len(self.rows(kind)), len(self.columns(kind)))
            if weights.ndim != 4 or weights.shape[2:] != expected:
                raise RegardError(f"attention maps: {kind} has the shape {weights.shape}, expected (L, H, *{expected})")
            if not np.allclose(weights.sum(-1), 1, atol=1e-2):  # bfloat16 has two or three digits
                raise RegardError(f"attention maps: {kind} has rows that do not sum to 1")

    def weights(self, kind: Kind) -> Floats:
        """The weights of one kind of attention, (L, H, rows, columns)."""
        return {"encoder": self.encoder, "decoder": self.decoder, "cross": self.cross}[kind]

    def rows(self, kind: Kind) -> tuple[str, ...]:
        """The tokens that look. In cross attention those are the ones that the look helps to write."""
        return {"encoder": self.source_tokens, "decoder": self.target_tokens, "cross": self.predicted_tokens}[kind]

    def columns(self, kind: Kind) -> tuple[str, ...]:
        """The tokens that are looked at."""
        return self.target_tokens if kind == "decoder" else self.source_tokens


# ---- what heads do ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeadReport:
    """Where one head looks, averaged over the positions that look; layers and heads count from 1.

    In cross attention "same" is the diagonal: the place in the source that is as far along as the row is in the
    target. The decoder can't look ahead, so it has no "next" and no "last"; its first row has no choice and is not
    counted.
    """

    kind: Kind
    layer: int
    head: int
    previous: float
    same: float
    next: float | None
    first: float
    last: float | None
    entropy: float
    """In bits."""
    evenness: float
    """The entropy as a share of the largest possible one: 0 looks at one token, 1 at all alike."""
    distance: float
    """Mean number of positions between who looks and what is looked at."""

    @property
    def verdict(self) -> str:
        """Say in a few words what the head does."""
        if self.evenness >= 0.9:
            return "spread evenly"
        cross = self.kind == "cross"
        places = {
            "follows the diagonal" if cross else "looks at itself": self.same,
            "looks before the diagonal" if cross else "looks at the previous token": self.previous,
            "looks past the diagonal" if cross else "looks at the next token": self.next or 0.0,
            "looks at the beginning": self.first,
            "looks at the end": self.last or 0.0,
        }
        best = max(places, key=lambda words: places[words])
        if places[best] >= 0.5:
            return best
        if self.previous + self.same + (self.next or 0.0) >= 0.6:
            return "stays near the diagonal" if cross else "looks at its neighbours"
        return "picks single tokens" if self.evenness <= 0.4 else "looks at several tokens"


def describe_heads(maps_list: Sequence[AttentionMaps]) -> list[HeadReport]:
    """Report on every head of the three kinds of attention, averaged over all positions of all sentences."""
    if not maps_list:
        return []
    return [report for kind in KINDS for report in _describe_kind(kind, [maps.weights(kind) for maps in maps_list])]


def head_table(reports: Iterable[HeadReport]) -> list[list[str]]:
    """Write reports as rows of text under a row of headings."""
    names = ("attention", "layer", "head", "previous", "same", "next", "first", "last", "entropy", "distance", "what")
    table = [list(names)]
    for report in reports:
        places = (report.previous, report.same, report.next, report.first, report.last)
        shares = ["–" if place is None else f"{place:.0%}" for place in places]
        spread = f"{report.entropy:.1f} bits ({report.evenness:.0%})"
        position = [report.kind, str(report.layer), str(report.head)]
        table.append([*position, *shares, spread, f"{report.distance:.1f}", report.verdict])
    return table


def _describe_kind(kind: Kind, sentences: Sequence[Floats]) -> list[HeadReport]:
    layers, heads = sentences[0].shape[:2]
    totals: dict[str, Floats] = {}
    counts: dict[str, int] = {}
    for weights in sentences:
        for name, (values, count) in _measure(kind, weights.astype(np.float64)).items():
            totals[name] = totals.get(name, np.zeros((layers, heads))) + values
            counts[name] = counts.get(name, 0) + count
    means = {name: totals[name] / max(counts[name], 1) for name in totals}

    def report(layer: int, head: int) -> HeadReport:
        values: dict[str, Any] = {name: float(mean[layer, head]) for name, mean in means.items()}
        if kind == "decoder":
            values["next"] = values["last"] = None
        return HeadReport(kind, layer + 1, head + 1, **values)

    return [report(layer, head) for layer in range(layers) for head in range(heads)]


def _measure(kind: Kind, weights: Floats) -> Mapping[str, tuple[Floats, int]]:
    """For each figure of a report: its sum over the rows of one sentence, (L, H), and how many rows have it."""
    rows, columns = weights.shape[2:]
    where, choices = np.arange(columns), np.full(rows, columns)
    here = np.arange(rows)[:, None]  # (rows, 1)
    if kind == "cross":
        here = np.round(here * (columns - 1) / max(rows - 1, 1)).astype(int)
    if kind == "decoder":
        choices = np.arange(rows) + 1
    weights, here, choices = weights[:, :, choices > 1], here[choices > 1], choices[choices > 1]

    every_row = np.ones_like(here, dtype=bool)
    places: dict[str, Mask] = {
        "previous": where == here - 1,
        "same": where == here,
        "next": where == here + 1,
        "first": every_row & (where == 0),
        "last": every_row & (where == columns - 1),
    }
    entropy = -(weights * np.log2(np.maximum(weights, 1e-30))).sum(-1)  # (L, H, rows)
    measured: dict[str, tuple[Floats, int]] = {
        name: ((weights * place).sum((-1, -2)), int(place.any(-1).sum())) for name, place in places.items()
    }
    measured["entropy"] = entropy.sum(-1), len(choices)
    measured["evenness"] = (entropy / np.log2(choices)).sum(-1), len(choices)
    measured["distance"] = (weights * np.abs(where - here)).sum((-1, -2)), len(choices)
    return measured


# ---- alignments ------------------------------------------------------------------------------------------------------


def alignment_layers(layers: int) -> range:
    """Return which decoder layers' cross attention tells alignments, counted from 0: the upper half.

    In deep decoders the last but one is known to tell most (Garg and others, 2019, 'Jointly Learning to Align and
    Translate with Transformer Models'); in one of two layers it is the last. The mean of the upper half serves both.
    """
    return range(layers // 2, layers)


def alignment_weights(cross: Floats) -> Floats:
    """Average cross attention over all heads of the `alignment_layers`, (L, H, T, S) to (T, S)."""
    mean: Floats = cross[alignment_layers(len(cross))].mean(axis=(0, 1))
    return mean


def align(weights: Floats) -> list[Point]:
    """Align each target token with the source token it looks at most: (source, target) points in the target's order.

    `weights` is (T, S). The end tokens, last on both sides, are aligned with nothing.
    """
    words = weights[:-1, :-1]
    if words.size == 0:
        return []
    return [(int(source), target) for target, source in enumerate(words.argmax(axis=1))]


def words_alignment(
    points: Iterable[Point], source_word_of: Sequence[int | None], target_word_of: Sequence[int | None]
) -> list[Point]:
    """Merge points between tokens to points between words; tokens that belong to no word (`None`) are left out."""
    merged = set()
    for source, target in points:
        source_word, target_word = source_word_of[source], target_word_of[target]
        if source_word is not None and target_word is not None:
            merged.add((source_word, target_word))
    return sorted(merged)


def pharaoh(points: Iterable[Point]) -> str:
    """Write an alignment as most tools read it: '0-0 1-2'."""
    return " ".join(f"{source}-{target}" for source, target in points)


def group_words(tokens: Sequence[str]) -> list[int]:
    """Return for each token to which word it belongs, counted from 0: a token that begins with '▁' begins a word.

    Tokens such as '</s>' are words of their own, and so is every token if none has the mark.
    """
    marked = any(token.startswith("▁") for token in tokens)
    numbers: list[int] = []
    after_special = True
    for token in tokens:
        special = token in ("<s>", "</s>", "<pad>", "<unk>")
        begins = after_special or special or not marked or token.startswith("▁")
        numbers.append((numbers[-1] if numbers else -1) + begins)
        after_special = special
    return numbers


# ---- pictures --------------------------------------------------------------------------------------------------------


def draw(maps: AttentionMaps, folder: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Draw every layer, an overview of each kind, and the alignment into a folder; return the files."""
    from regard.pictures import draw_attention  # matplotlib is slow to import, and alignments don't need it

    return draw_attention(maps, folder, formats)


def draw_curve(
    steps: Sequence[int],
    losses: Sequence[float],
    validation: Sequence[tuple[int, float, float | None]],
    path: Path,
) -> Path:
    """Draw training loss, and validation's (step, loss, BLEU or None), into a file; return its path."""
    from regard.pictures import draw_training

    return draw_training(steps, losses, validation, path)
