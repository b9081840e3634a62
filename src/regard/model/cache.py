"""What a decoder remembers between two steps of search, so that each step computes one position only.

Shapes: B sentences, K hypotheses a sentence, H heads, S source length, T target length so far, E head width.
"""

from dataclasses import dataclass

from torch import Tensor

from regard.model.attention import KeysValues
from regard.model.past import Past


@dataclass(frozen=True)
class DecoderState:
    """The past of B·K hypotheses, and the source of B sentences, held once however many hypotheses look at it."""

    past: tuple[Past | None, ...]  # a layer each, of B·K sequences
    source: tuple[KeysValues, ...]  # a layer each: (B, H, S, E)
    mask: Tensor | None  # (B, 1, 1, S)
    beams: int  # K
    position: int  # T, of the token that comes next

    def select(self, parents: Tensor) -> "DecoderState":
        """Return the state of new hypotheses that continue old ones.

        `parents` (B', K') holds rows of the old B·K; the parents in a row are hypotheses of one sentence. Leaving out
        a sentence forgets it; naming a parent twice lets two hypotheses continue it.
        """
        rows = parents.flatten()
        sentences = parents[:, 0] // self.beams
        past, source, mask = self.past, self.source, self.mask
        count = source[0].keys.size(0)
        if not _is_everything(rows, count * self.beams):
            past = tuple(layer if layer is None else layer.select(rows) for layer in past)
        if not _is_everything(sentences, count):
            source = tuple(KeysValues(*(part.index_select(0, sentences) for part in layer)) for layer in source)
            mask = None if mask is None else mask[sentences]
        return DecoderState(past, source, mask, parents.size(1), self.position)


def _is_everything(rows: Tensor, count: int) -> bool:
    """Say whether the selection is just what there is, in order, so that nothing needs to be copied."""
    return rows.numel() == count and bool((rows == rows.new_tensor(range(count))).all())
