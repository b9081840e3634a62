"""The report of a preparation: how many pairs were kept, why others were not, and what was made of them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class PartReport:
    """What became of the pairs of the training or the validation corpora; lengths count the end token."""

    read: int
    kept: int
    empty: int
    duplicates: int
    too_long: int
    ratio: int
    repeats: int  # kept, though an earlier pair is the same
    leaked: int  # kept for validation, though training has the same pair
    source_tokens: int
    target_tokens: int
    longest_source: int
    longest_target: int

    def lines(self, name: str, max_length: int, max_ratio: float) -> Iterator[str]:
        """Yield the lines for people."""
        yield f"{name}: kept {self.kept:,} of {self.read:,} pairs"
        reasons = {
            "empty on one side": self.empty,
            "repeats of an earlier pair": self.duplicates,
            f"longer than {max_length:,} tokens": self.too_long,
            f"one side over {max_ratio:g} times as long as the other": self.ratio,
        }
        for reason, count in reasons.items():
            if count:
                yield f"  dropped {count:,}: {reason}"
        if self.repeats:
            yield f"  kept {self.repeats:,} that repeat an earlier pair"
        if self.leaked:
            yield f"  warning: {self.leaked:,} of those kept are in the training text as well"
        if self.kept:
            tokens = f"{self.source_tokens:,} source and {self.target_tokens:,} target tokens"
            yield f"  {tokens}, the longest sentence {self.longest_source:,} and {self.longest_target:,}"


@dataclass(frozen=True)
class SegmentationReport:
    """What was drawn for `data.subword_dropout`."""

    dropout: float
    words: int  # distinct ones
    drawn: int  # segmentations of each
    growth: float  # of the number of tokens

    def line(self) -> str:
        """Return the line for people."""
        return (
            f"subword dropout {self.dropout:g}: {self.drawn} segmentations of each of {self.words:,} words; training "
            f"sees {self.growth:.2f} times as many tokens"
        )


@dataclass(frozen=True)
class Report:
    """What a preparation did."""

    train: PartReport
    valid: PartReport | None
    vocabulary_size: int
    byte_share: float  # of the training tokens
    padding: float  # share of all positions of a training epoch
    piece_tokens: int
    max_length: int
    max_ratio: float
    segmentations: SegmentationReport | None = None

    def lines(self) -> list[str]:
        """Return the report for people."""
        lines = list(self.train.lines("training", self.max_length, self.max_ratio))
        if self.valid:
            lines += self.valid.lines("validation", self.max_length, self.max_ratio)
        lines.append(
            f"vocabulary: {self.vocabulary_size:,} subwords; {self.byte_share:.2%} of the training tokens are bytes"
        )
        if self.segmentations:
            lines.append(self.segmentations.line())
        lines.append(f"padding: {self.padding:.1%} in pieces of {self.piece_tokens:,} tokens")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)
