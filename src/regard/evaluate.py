"""How good translations are: sacreBLEU's metrics, and the paper's own BLEU under its own name.

Every score carries a signature that says how it was computed, and an interval: the corpus is drawn anew from its own
sentences many times (bootstrap, Koehn 2004), and 95 % of the scores of those draws lie in the interval. Two systems
are compared by approximate randomisation (Riezler and Maxwell 2005): if they were equally good, swapping their
translations of a sentence would change nothing; the p-value is the share of random swaps that separate them as far.

Both tests need a metric's sentence statistics only, which are extracted once and summed by matrix products.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.base import Score as SacreScore
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER, TERScore

from regard.errors import UserError

Floats: TypeAlias = NDArray[np.float64]
Interval: TypeAlias = tuple[float, float]

SEED = 12345  # sacreBLEU's, so that its draws and ours are the same
_DRAWN_AT_ONCE = 4_000_000  # sentences; bounds the memory of a bootstrap over a large corpus


@dataclass(frozen=True)
class Score:
    """A metric's value for a corpus, with what is needed to trust and to repeat it."""

    name: str
    value: float
    interval: Interval | None
    """95 % of the bootstrap's scores lie in it; `None` without a bootstrap."""
    signature: str
    detail: str
    lower_is_better: bool = False


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same sentences: how far apart they are, and how easily chance would do that."""

    name: str
    systems: tuple[str, str]
    values: tuple[float, float]
    interval: Interval | None
    """95 % of the bootstrap's differences lie in it; `None` without a bootstrap."""
    p_value: float
    signature: str
    lower_is_better: bool = False

    @property
    def difference(self) -> float:
        """The second system's value minus the first's."""
        return self.values[1] - self.values[0]

    def better(self, level: float = 0.05) -> str | None:
        """Name the better system, or return `None` if chance explains the difference at this level."""
        if self.p_value >= level or self.difference == 0:
            return None
        return self.systems[(self.difference > 0) != self.lower_is_better]


def score_all(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    bootstrap: int = 1000,
    tokenized: bool = False,
    lowercase: bool = False,
) -> list[Score]:
    """Score translations by BLEU, chrF, TER and the paper's BLEU, each with an interval from `bootstrap` draws.

    `tokenized` says that words and punctuation are already separated by spaces; fewer than two draws give no interval.
    Raises `UserError` if there is nothing to score or the counts differ.
    """
    _check_counts(hypotheses, references)
    scores = []
    for measure in _measures(target_language, tokenized=tokenized, lowercase=lowercase):
        statistics = measure.statistics(hypotheses, measure.prepare_all(references))
        total = measure.score(statistics.sum(0))
        interval = _percentiles(_bootstrap(measure, statistics, bootstrap)) if bootstrap > 1 else None
        detail = _detail(total)
        if measure.name == "BLEU" and not tokenized and _looks_tokenized(hypotheses, references):
            detail += "; many lines end in a separated full stop: already tokenised?"
        scores.append(
            Score(measure.name, total.score, interval, measure.signature(bootstrap), detail, measure.lower_is_better)
        )
    return scores


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    names: tuple[str, str] = ("first", "second"),
    target_language: str = "",
    bootstrap: int = 1000,
    trials: int = 10_000,
    tokenized: bool = False,
    lowercase: bool = False,
) -> list[Comparison]:
    """Compare two systems' translations of the same sentences by the metrics of `score_all`.

    The p-value comes from `trials` random swaps, the difference's interval from `bootstrap` paired draws. Raises
    `UserError` if there is nothing to score or the counts differ.
    """
    _check_counts(first, references, names[0])
    _check_counts(second, references, names[1])
    comparisons = []
    for measure in _measures(target_language, tokenized=tokenized, lowercase=lowercase):
        prepared = measure.prepare_all(references)
        ours, theirs = measure.statistics(first, prepared), measure.statistics(second, prepared)
        values = (measure.score(ours.sum(0)).score, measure.score(theirs.sum(0)).score)
        interval = None
        if bootstrap > 1:
            # The same seed draws the same sentences for both systems: that makes the differences paired.
            interval = _percentiles(_bootstrap(measure, theirs, bootstrap) - _bootstrap(measure, ours, bootstrap))
        p_value = _randomization_test(measure, ours, theirs, trials)
        signature = measure.signature(bootstrap, trials)
        comparisons.append(
            Comparison(measure.name, names, values, interval, p_value, signature, measure.lower_is_better)
        )
    return comparisons


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    tokenized: bool = False,
    lowercase: bool = False,
) -> float:
    """Return sacreBLEU's BLEU alone, without an interval: quick enough for every validation."""
    _check_counts(hypotheses, references)
    metric = _bleu_metric(_base_language(target_language), tokenized=tokenized, lowercase=lowercase)
    return float(metric.corpus_score(hypotheses, [references]).score)


def word_splitter(target_language: str = "") -> Callable[[str], list[str]]:
    """Return what makes of a sentence the words that BLEU counts."""
    metric = _bleu_metric(_base_language(target_language), tokenized=False, lowercase=False)

    def split(sentence: str) -> list[str]:
        return str(metric.tokenizer(sentence)).split()

    return split


def exact_matches(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of translations that equal their reference, white space around them aside."""
    _check_counts(hypotheses, references)
    same = sum(ours.strip() == theirs.strip() for ours, theirs in zip(hypotheses, references, strict=True))
    return same / len(references)


def sentence_scores(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return the chrF of each sentence, 0 to 100: what finds the worst translations of a test set.

    BLEU is not used here because most single sentences share no run of four words with their reference.
    """
    _check_counts(hypotheses, references)
    metric = CHRF()
    return [
        # chrF knows no n-grams in an empty sentence and would call a rightly empty translation worthless.
        100.0 if ours.split() == theirs.split() else float(metric.sentence_score(ours, [theirs]).score)
        for ours, theirs in zip(hypotheses, references, strict=True)
    ]


def paper_tokens(sentence: str, tokenize: Callable[[str], str] | None = None) -> str:
    """Tokenise a sentence as the paper's script did before its BLEU: by Moses, then compounds split at hyphens.

    The script's `perl -ple 's{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g'` works on bytes, and a match consumes the byte on
    each side: 'a-b-c' is split once, while 'a-ä-c' is split twice, because 'ä' has a byte for each hyphen. Done
    likewise here.
    """
    tokens = tokenize(sentence) if tokenize else sentence
    return re.sub(rb"(\S)-(\S)", rb"\1 ##AT##-##AT## \2", tokens.encode()).decode()


# ---- metrics ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Measure:
    """A sacreBLEU metric with our name for it and what happens to the text before it."""

    name: str
    metric: Metric
    prepare: Callable[[str], str] | None = None
    tokens: str = ""
    """What replaces the metric's own `tok:` in the signature."""
    lower_is_better: bool = False

    def prepare_all(self, sentences: Sequence[str]) -> Sequence[str]:
        """Return the sentences as this metric wants them."""
        return [self.prepare(sentence) for sentence in sentences] if self.prepare else sentences

    def statistics(self, hypotheses: Sequence[str], prepared_references: Sequence[str]) -> Floats:
        """Return what the metric counts in each sentence; rows may be added up. Shape (sentences, counts)."""
        rows = self.metric._extract_corpus_statistics(self.prepare_all(hypotheses), [prepared_references])
        return np.array(rows, dtype=np.float64)

    def score(self, counts: Floats) -> SacreScore:
        """Return the metric's score of added rows."""
        score = self.metric._compute_score_from_stats(counts.tolist())
        assert isinstance(score, SacreScore)
        return score

    def scores(self, many_counts: Floats) -> Floats:
        """Return the value for each row of added rows."""
        return np.array([self.score(counts).score for counts in many_counts])

    def signature(self, bootstrap: int, trials: int | None = None) -> str:
        """Write sacreBLEU's signature, headed by the metric's name."""
        signature = self.metric.get_signature()
        if self.tokens:
            signature.update("tok", self.tokens)
        for key, count in (("bs", bootstrap), ("ar", trials)):
            if count is not None and count > 1:
                signature.update(key, count)
                signature.update("seed", SEED)
        return f"{self.name.replace(' ', '')}|{signature.format()}"


def _measures(target_language: str, *, tokenized: bool, lowercase: bool) -> Iterator[_Measure]:
    language = _base_language(target_language)
    yield _Measure("BLEU", _bleu_metric(language, tokenized=tokenized, lowercase=lowercase))
    yield _Measure("chrF2", CHRF(lowercase=lowercase))
    # Chinese and Japanese write no spaces: without splitting, a sentence would be one word of the edit distance.
    unspaced = language in ("zh", "ja") and not tokenized
    yield _Measure("TER", TER(normalized=unspaced, asian_support=unspaced), lower_is_better=True)
    yield _paper_measure(language, tokenized=tokenized, lowercase=lowercase)


def _base_language(code: str) -> str:
    """Return 'pt' for 'pt-BR' and 'pt_BR'."""
    return code.replace("_", "-").partition("-")[0].lower()


def _bleu_metric(language: str, *, tokenized: bool, lowercase: bool) -> BLEU:
    if tokenized:
        return BLEU(tokenize="none", lowercase=lowercase, force=True)
    try:
        return BLEU(trg_lang=language, lowercase=lowercase, force=True)
    except RuntimeError:
        # The word splitters for Japanese and Korean are packages of their own; the signature says which was used.
        return BLEU(tokenize="char", lowercase=lowercase, force=True)


def _paper_measure(language: str, *, tokenized: bool, lowercase: bool) -> _Measure:
    """The paper's BLEU (its get_ende_bleu.sh): Moses tokens, split compounds, multi-bleu.perl's unsmoothed formula."""
    metric = BLEU(tokenize="none", smooth_method="none", lowercase=lowercase, force=True)
    if tokenized:
        return _Measure("paper BLEU", metric, paper_tokens, tokens="none+compound-split")
    import sacremoses

    moses = sacremoses.MosesTokenizer(lang=language or "en")

    def tokenize(sentence: str) -> str:
        return str(moses.tokenize(sentence, return_str=True))

    tokens = f"moses-{language or 'en'}[sacremoses-{sacremoses.__version__}]+compound-split"
    return _Measure("paper BLEU", metric, lambda sentence: paper_tokens(sentence, tokenize), tokens=tokens)


def _detail(score: SacreScore) -> str:
    if isinstance(score, BLEUScore):
        precisions = "/".join(f"{precision:.1f}" for precision in score.precisions)
        lengths = f"{score.sys_len:,} against {score.ref_len:,} tokens"
        return f"precisions {precisions}, brevity penalty {score.bp:.3f}, {lengths}"
    if isinstance(score, TERScore):
        return f"{score.num_edits:,.0f} edits for {score.ref_length:,.0f} reference words"
    return "F2 of character n-grams, 1 to 6"


def _looks_tokenized(*texts: Sequence[str]) -> bool:
    return any(sum(line.endswith(" .") for line in lines) * 4 > len(lines) for lines in texts)


def _check_counts(hypotheses: Sequence[str], references: Sequence[str], name: str = "") -> None:
    label = f" of {name!r}" if name else ""
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses):,} translations{label} against {len(references):,} references"
        raise UserError(f"{counts}: the two must belong line by line")
    if not references:
        raise UserError(f"nothing to score: 0 translations{label}, 0 references")


# ---- chance ----------------------------------------------------------------------------------------------------------


def _chunks(draws: int, sentences: int) -> Iterator[int]:
    """Cut a number of draws into pieces that fit in memory."""
    size = max(1, _DRAWN_AT_ONCE // sentences)
    yield from (min(size, draws - start) for start in range(0, draws, size))


def _bootstrap(measure: _Measure, statistics: Floats, draws: int) -> Floats:
    """Score corpora drawn with replacement from the sentences; a fixed seed makes it repeatable. Shape (draws,)."""
    generator = np.random.default_rng(SEED)
    sentences = len(statistics)
    totals = []
    for size in _chunks(draws, sentences):
        drawn = generator.choice(sentences, size=(size, sentences), replace=True)
        times = np.stack([np.bincount(row, minlength=sentences) for row in drawn])  # (size, sentences)
        totals.append(times.astype(np.float64) @ statistics)
    return measure.scores(np.concatenate(totals))


def _percentiles(values: Floats) -> Interval:
    """Cut a fortieth off at each end, as sacreBLEU does."""
    ordered = np.sort(values)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def _randomization_test(measure: _Measure, first: Floats, second: Floats, trials: int) -> float:
    """Return how often randomly swapped systems are at least as far apart as the real ones.

    Unlike sacreBLEU's own test, a trial that is exactly as far apart counts: two identical systems get p = 1.
    """
    generator = np.random.default_rng(SEED)
    together = first.sum(0) + second.sum(0)
    real = abs(measure.score(first.sum(0)).score - measure.score(second.sum(0)).score)
    as_far = 0
    for size in _chunks(trials, len(first)):
        swapped = generator.integers(2, size=(size, len(first))).astype(np.float64)
        one = first.sum(0) + swapped @ (second - first)  # (size, counts)
        apart = np.abs(measure.scores(one) - measure.scores(together - one))
        as_far += int(np.sum(apart >= real - 1e-9))  # rounding must not tell equals apart
    return (as_far + 1) / (trials + 1)
