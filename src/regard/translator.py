"""The translator: text in, text out, in the caller's order.

Text goes through in windows: the sentences of a window are sorted by length, searched in batches, and given back in
the order they came in. A text longer than any the model has seen is split at sentence ends and put together again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from torch import Tensor

from regard.attention_maps import AttentionMaps, align, alignment_layers, words_alignment
from regard.engine import NativeModel, lay_out_for
from regard.errors import UserError
from regard.machine import Machine, choose_machine
from regard.model.observe import observe_attention, observe_cross_attention
from regard.model.protocol import TranslationModel
from regard.model.quantize import use_int8_products
from regard.model.restricted import RestrictedModel
from regard.model.transformer import Transformer
from regard.model_folder import read_model, read_shortlist
from regard.search.beam import beam_search
from regard.search.ensemble import Ensemble
from regard.search.greedy import greedy_search
from regard.search.hypothesis import Hypothesis, length_penalty
from regard.search.predictor import Array, Predictor, predictor_of
from regard.search.sample import sample
from regard.search.scoring import score_targets
from regard.seeds import mix
from regard.settings import Settings
from regard.shortlist import Shortlist
from regard.text.segment import Segment, split_to_fit
from regard.text.vocabulary import Vocabulary
from regard.tokens import END, PAD, START
from regard.translation import Candidate, Points, SearchChanges, SearchOptions, Translation, assemble

WINDOW = 2048  # texts read ahead
_WINDOW_CHARACTERS = 1 << 20  # of text read ahead, however long the texts are

Found = list[Candidate] | str
"""What a search has found for a piece of text, best first; or why it failed."""


@dataclass(frozen=True)
class _Unit:
    """What one search translates: a text, or a piece of one that is too long."""

    tokens: list[int]
    seed: int


class Translator:
    """A model with its vocabulary, ready to translate."""

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        settings: Settings,
        machine: Machine,
        longest: int | None = None,
        shortlist: Shortlist | None = None,
        native: NativeModel | Ensemble | None = None,
    ) -> None:
        """Make a translator; `longest` is the longest source sentence the model has seen, in subwords.

        With a shortlist, a sentence is translated with the tokens of its own list alone. `native` is the same model,
        laid out for the compiled engine, which searches instead of torch; or several models that search together.
        """
        self.model = model.to(machine.device).eval()
        self.longest = min(longest or settings.data.max_length, settings.data.max_length)
        self.vocabulary = vocabulary
        self.settings = settings
        self.machine = machine
        self.shortlist = shortlist
        self.native = native
        search = settings.search
        self.options = SearchOptions(search.beam, search.length_penalty, search.extra_length)

    # ---- translating -----------------------------------------------------------------------------------------------

    @overload
    def translate(self, text: str, **changes: Unpack[SearchChanges]) -> Translation: ...
    @overload
    def translate(self, text: list[str], **changes: Unpack[SearchChanges]) -> list[Translation]: ...
    def translate(self, text: str | list[str], **changes: Unpack[SearchChanges]) -> Translation | list[Translation]:
        """Translate a text, or each of a list of texts; see `SearchOptions` for the keyword arguments."""
        if isinstance(text, str):
            return next(self.translate_lines([text], **changes))
        return list(self.translate_lines(text, **changes))

    def translate_lines(
        self, lines: Iterable[str], window: int = WINDOW, **changes: Unpack[SearchChanges]
    ) -> Iterator[Translation]:
        """Translate a stream of texts in constant memory, in order, one out for each one in.

        At most `window` texts are read ahead. Raises `UserError` at once for options that make no sense.
        """
        return self._translate_stream(lines, window, self.change_options(changes))

    def translate_window(
        self, texts: Sequence[str], first: int = 0, **changes: Unpack[SearchChanges]
    ) -> list[Translation]:
        """Translate a part of a stream of texts, of which `first` went before: what is drawn depends on that."""
        return list(self._translate_window(texts, first, self.change_options(changes)))

    def change_options(self, changes: SearchChanges) -> SearchOptions:
        """Return the search options with changes; raises `UserError` for what is unknown or makes no sense."""
        options = self.options.change(changes)
        if options.sampling and self.shortlist is not None:
            raise UserError("sampling draws from the whole vocabulary; load the model without its shortlist")
        return options

    def _translate_stream(self, lines: Iterable[str], window: int, options: SearchOptions) -> Iterator[Translation]:
        first = 0
        for texts in cut_windows(lines, window):
            yield from self._translate_window(texts, first, options)
            first += len(texts)

    def _translate_window(self, texts: Sequence[str], first: int, options: SearchOptions) -> Iterator[Translation]:
        """Translate texts, of which the first is number `first` of all."""
        pieces = self._split(texts)
        units = [
            _Unit(tokens, seed=mix(options.seed, first + number, place))
            for number, parts in enumerate(pieces)
            for place, (_, tokens) in enumerate(parts)
        ]
        found = iter(self._translate_units(units, options))
        for text, parts in zip(texts, pieces, strict=True):
            segments = [segment for segment, _ in parts]
            yield assemble(text, segments, list(islice(found, len(parts))), options)

    def _split(self, texts: Sequence[str]) -> list[list[tuple[Segment, list[int]]]]:
        """Return for each text its pieces that are translated on their own: mostly just one, none if it is blank."""
        stripped = [text.strip() for text in texts]
        encoded = self.vocabulary.encode_batch(stripped)
        return [self._pieces(text, tokens) for text, tokens in zip(stripped, encoded, strict=True)]

    def _pieces(self, text: str, tokens: list[int]) -> list[tuple[Segment, list[int]]]:
        if not text:
            return []
        # A line break is never left to the model: it was trained on lines.
        if len(tokens) <= self.longest and "\n" not in text:
            return [(Segment(text, ""), tokens)]
        most = min(self.longest * 3 // 2, self.settings.data.max_length)
        segments = split_to_fit(text, lambda piece: len(self.vocabulary.encode(piece)), self.longest, most)
        return list(zip(segments, self.vocabulary.encode_batch([one.text for one in segments]), strict=True))

    def _translate_units(self, units: Sequence[_Unit], options: SearchOptions) -> list[Found]:
        found: list[Found] = [[Candidate("", 0.0)] for _ in units]
        todo = [i for i, unit in enumerate(units) if unit.tokens != [END]]  # a piece without text needs no model
        lengths = [len(units[i].tokens) for i in todo]
        for batch in _batches(lengths, options.batch_tokens // options.hypotheses):
            rows = [todo[place] for place in batch]
            for row, result in zip(rows, self._translate_batch([units[i] for i in rows], options), strict=True):
                found[row] = result
        return found

    def _translate_batch(self, units: Sequence[_Unit], options: SearchOptions) -> list[Found]:
        """Translate a batch; one that fails, for want of memory or otherwise, is tried again in halves."""
        try:
            return list(self._search(units, options))
        except (RuntimeError, MemoryError) as error:
            if len(units) == 1:
                return [f"{type(error).__name__}: {error}".splitlines()[0]]
        half = len(units) // 2
        return self._translate_batch(units[:half], options) + self._translate_batch(units[half:], options)

    def _search(self, units: Sequence[_Unit], options: SearchOptions) -> list[list[Candidate]]:
        src = self._tensor([unit.tokens for unit in units])  # (B, S)
        # The input's length is its text's, without the end token; the output's limit counts its end token.
        limits = torch.tensor([len(unit.tokens) + options.extra_length for unit in units], device=src.device)
        with self.machine.autocast():
            if options.sampling:
                seeds = [unit.seed for unit in units]
                found = sample(self.model, src, limits, seeds, options.n_best, options.temperature, options.top_k)
            elif self.shortlist is not None:
                batch = self.shortlist.batch([unit.tokens for unit in units])
                found = _search_best(self._restricted(*batch), src, limits, options)
                found = [[one.renumbered(batch.rows.tolist()) for one in best] for best in found]
            else:
                found = _search_best(self.native or self.model, src, limits, options)
            nothing: list[list[Points]] = [[()] * len(row) for row in found]
            alignments = self._align_found(units, found) if options.alignments else nothing
        return [
            [self._candidate(*pair) for pair in zip(hypotheses, points, strict=True)]
            for hypotheses, points in zip(found, alignments, strict=True)
        ]

    def _restricted(self, rows: Array, allowed: Array) -> RestrictedModel | NativeModel:
        """Return the model with these tokens alone, and each sentence of a batch with those that it is allowed."""
        if isinstance(self.native, NativeModel):
            return self.native.restricted(rows, allowed)
        device = self.machine.device
        return RestrictedModel(self.model, torch.from_numpy(rows).to(device), torch.from_numpy(allowed).to(device))

    def _candidate(self, hypothesis: Hypothesis, alignment: Points) -> Candidate:
        return Candidate(
            text=self.vocabulary.decode(hypothesis.tokens),
            score=hypothesis.score,
            tokens=tuple(self.vocabulary.pieces(hypothesis.tokens)),
            token_scores=hypothesis.token_scores,
            alignment=alignment,
        )

    # ---- looking in ------------------------------------------------------------------------------------------------

    def _align_found(self, units: Sequence[_Unit], found: Sequence[Sequence[Hypothesis]]) -> list[list[Points]]:
        """Return word alignments of all hypotheses, from the attention of one more pass over the finished pairs."""
        pairs = [(unit.tokens, one.tokens) for unit, row in zip(units, found, strict=True) for one in row]
        points = iter(self._align(pairs))
        return [list(islice(points, len(row))) for row in found]

    def _align(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Iterator[Points]:
        src = self._tensor([source for source, _ in pairs])
        tgt = self._tensor([[START, *target[:-1]] for _, target in pairs])
        layers = alignment_layers(len(self.model.decoder.layers))
        weights = observe_cross_attention(self.model, src, tgt, layers).float().cpu().numpy()
        numbers = self.vocabulary.word_numbers
        for (source, target), looks in zip(pairs, weights, strict=True):
            points = align(looks[: len(target), : len(source)])
            yield tuple(words_alignment(points, numbers(source), numbers(target)))

    def align(self, source: str, target: str) -> list[tuple[str, str]]:
        """Return the words of a text and of its translation that belong together."""
        read, written = self.vocabulary.encode(source.strip()), self.vocabulary.encode(target.strip())
        source_words, target_words = (self.vocabulary.decode(ids).split() for ids in (read, written))
        with self.machine.autocast():
            (points,) = self._align([(read, written)])
        return [(source_words[one], target_words[other]) for one, other in points]

    def look(self, source: str, target: str | None = None) -> AttentionMaps:
        """Return the attention of all layers and heads for a source and its translation, or for a given target."""
        read = self.vocabulary.encode(source.strip())
        if target is None:
            target = self._search([_Unit(read, seed=1)], self.options)[0][0].text
        written = self.vocabulary.encode(target.strip())
        fed = [START, *written[:-1]]
        with self.machine.autocast():
            seen = observe_attention(self.model, self._tensor([read]), self._tensor([fed]))
        encoder, decoder, cross = (
            torch.stack([layer[0] for layer in layers]).float().cpu().numpy() for layers in seen
        )  # (L, H, N, M)
        pieces = self.vocabulary.pieces
        return AttentionMaps(tuple(pieces(read)), tuple(pieces(fed)), tuple(pieces(written)), encoder, decoder, cross)

    # ---- scoring ---------------------------------------------------------------------------------------------------

    def score(self, pairs: Iterable[tuple[str, str]], window: int = WINDOW) -> Iterator[Candidate]:
        """Give the log-probability of each pair's target, in order; texts are never split here."""
        rest = iter(pairs)
        while chunk := list(islice(rest, window)):
            yield from self._score_window(chunk)

    def _score_window(self, pairs: Sequence[tuple[str, str]]) -> list[Candidate]:
        sources = self.vocabulary.encode_batch([source.strip() for source, _ in pairs])
        targets = self.vocabulary.encode_batch([target.strip() for _, target in pairs])
        # A blank text is translated to a blank one without the model; so that is certain.
        found = {i: Candidate(pair[1], 0.0) for i, pair in enumerate(pairs) if not "".join(pair).strip()}
        rest = [i for i in range(len(pairs)) if i not in found]
        for places in _batches([max(len(sources[i]), len(targets[i])) for i in rest], self.options.batch_tokens):
            batch = [rest[place] for place in places]
            src = self._tensor([sources[i] for i in batch])
            tgt = self._tensor([[START, *targets[i]] for i in batch])
            with self.machine.autocast():
                scores = score_targets(self.model, src, tgt)
            for i, token_scores in zip(batch, scores, strict=True):
                score = sum(token_scores) / length_penalty(len(token_scores), self.options.length_penalty)
                tokens = tuple(self.vocabulary.pieces(targets[i]))
                found[i] = Candidate(pairs[i][1], score, tokens, tuple(token_scores))
        return [found[i] for i in range(len(pairs))]

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return (B, longest), filled up with padding on the right."""
        longest = max(map(len, rows))
        padded = [[*row, *[PAD] * (longest - len(row))] for row in rows]
        return torch.tensor(padded, dtype=torch.long, device=self.machine.device)


def _search_best(
    model: TranslationModel[Any] | Predictor[Any], src: Tensor, limits: Tensor, options: SearchOptions
) -> list[list[Hypothesis]]:
    """Return each sentence's best hypotheses, as many as the options want."""
    if options.beam == 1:
        return [[one] for one in greedy_search(model, src, limits, options.length_penalty)]
    return beam_search(model, src, limits, options.beam, options.length_penalty, options.n_best)


def load(
    path: str | Path,
    *,
    device: str = "auto",
    precision: str = "auto",
    threads: int | None = None,
    shortlist: bool = False,
) -> Translator:
    """Load a translator from a model's folder or a run's.

    With the precision 'int8', matrix products run in eight bits: faster on a CPU, and hardly different. 'auto' does so
    for a model whose weights were rounded. With `shortlist`, only the likely words of each sentence are considered;
    raises `FileFormatError` if the folder has no shortlist, which 'regard shortlist' makes.
    """
    loaded = read_model(Path(path))
    words = read_shortlist(Path(path), loaded.vocabulary) if shortlist else None
    if precision == "auto" and loaded.is_rounded:
        precision = "int8"
    machine = choose_machine(device, precision, threads)
    native = lay_out_for(machine, loaded.model)
    if machine.precision == "int8":
        use_int8_products(loaded.model)
    longest = loaded.facts.get("longest_source")
    return Translator(loaded.model, loaded.vocabulary, loaded.settings, machine, longest, words, native)


def join(translators: Sequence[Translator]) -> Translator:
    """Return the first of some translators with one vocabulary, but that it searches by the mean of all."""
    first = translators[0]
    if len(translators) == 1:
        return first
    ensemble = Ensemble([predictor_of(one.native or one.model, one.machine.device) for one in translators])
    return Translator(first.model, first.vocabulary, first.settings, first.machine, first.longest, native=ensemble)


def cut_windows(lines: Iterable[str], most: int) -> Iterator[list[str]]:
    """Cut a stream into lists of at most `most` texts and hardly more than a bounded number of characters."""
    texts: list[str] = []
    characters = 0
    for line in lines:
        texts.append(line)
        characters += len(line)
        if len(texts) >= most or characters >= _WINDOW_CHARACTERS:
            yield texts
            texts, characters = [], 0
    if texts:
        yield texts


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Cut indices, from the longest to the shortest, into batches whose padded size stays within the budget."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
