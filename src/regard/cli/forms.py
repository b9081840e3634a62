"""How a translation is written: as a line of text, with columns, as a list, or as JSON."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.cli.lines import one_column, one_line

if TYPE_CHECKING:
    from regard.translation import Candidate, Translation


@dataclass(frozen=True)
class Form:
    """What is written of a translation."""

    n_best: bool = False
    scores: bool = False
    alignments: bool = False
    as_json: bool = False


def formatter(form: Form) -> "Callable[[int, Translation], Iterator[str]]":
    """Return what writes a translation, given the number of its line, as the lines that were asked for."""
    from regard.attention_maps import pharaoh

    def columns(candidate: "Candidate") -> list[str]:
        score = [f"{candidate.score:.4f}"] if form.scores or form.n_best else []
        return score + ([pharaoh(candidate.alignment)] if form.alignments else [])

    def as_json_line(number: int, translation: "Translation") -> Iterator[str]:
        yield json.dumps(_as_dict(translation), ensure_ascii=False)

    def as_list(number: int, translation: "Translation") -> Iterator[str]:
        for one in translation.candidates:
            yield " ||| ".join([str(number), one_line(one.text), *columns(one)])

    def as_columns(number: int, translation: "Translation") -> Iterator[str]:
        best = translation.candidates[0]
        yield "\t".join([one_column(best.text), *columns(best)])

    def as_text(number: int, translation: "Translation") -> Iterator[str]:
        yield one_line(translation.text)

    if form.as_json:
        return as_json_line
    if form.n_best:
        return as_list
    return as_columns if form.scores or form.alignments else as_text


def _as_dict(translation: "Translation") -> dict[str, object]:
    best, *others = [_candidate_as_dict(candidate) for candidate in translation.candidates]
    answer: dict[str, object] = {"source": translation.source, **best}
    if others:
        answer["others"] = others
    if translation.error is not None:
        answer["error"] = translation.error
    return answer


def _candidate_as_dict(candidate: "Candidate") -> dict[str, object]:
    return {
        "text": candidate.text,
        "score": None if candidate.score == float("-inf") else candidate.score,
        "log_probability": candidate.log_probability,
        "tokens": candidate.tokens,
        "token_scores": candidate.token_scores,
        "alignment": candidate.alignment,
    }
