"""Scores against hand-computed values, an independent multi-bleu, sacreBLEU's own machinery, and chance."""

import math
import random
import shutil
import subprocess
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from regard import evaluate
from regard.errors import UserError
from regard.evaluate import Comparison, Score, bleu, compare, exact_matches, paper_tokens, score_all, sentence_scores

REFERENCES = [
    f"Der {adjective} Mann sieht {count} {noun} vor dem Haus-Tor ."
    for adjective in ("alte", "junge", "müde", "kluge")
    for count in ("zwei", "drei", "vier")
    for noun in ("Hunde", "Katzen", "E-Mail-Adressen", "Kinder")
]


def damage(sentences: list[str], share: float, seed: int) -> list[str]:
    """Replace about this share of the words."""
    chance = random.Random(seed)
    return [
        " ".join(word if chance.random() > share else "falsch" for word in sentence.split()) for sentence in sentences
    ]


def by_name(scores: list[Score]) -> dict[str, Score]:
    return {score.name: score for score in scores}


def multi_bleu(hypotheses: list[str], references: list[str]) -> float:
    """BLEU as multi-bleu.perl computes it for one reference, written from its description."""
    correct, total = [0] * 4, [0] * 4
    hypothesis_length = reference_length = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        words, reference_words = hypothesis.split(), reference.split()
        hypothesis_length += len(words)
        reference_length += len(reference_words)
        for n in range(1, 5):
            found = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            wanted = Counter(tuple(reference_words[i : i + n]) for i in range(len(reference_words) - n + 1))
            correct[n - 1] += sum(min(count, wanted[ngram]) for ngram, count in found.items())
            total[n - 1] += sum(found.values())
    if not all(correct):
        return 0.0
    brevity = min(1.0, math.exp(1 - reference_length / hypothesis_length))
    return 100 * brevity * math.exp(sum(math.log(c / t) for c, t in zip(correct, total, strict=True)) / 4)


# ---- values ----------------------------------------------------------------------------------------------------------


def test_bleu_is_what_one_computes_by_hand():
    # Of 6 words 5 are right, of 5 pairs 4, of 4 triples 3, of 3 quadruples 2; the lengths are equal.
    expected = 100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25
    assert bleu(["the cat sat on the rug"], ["the cat sat on the mat"]) == pytest.approx(expected)


def test_a_short_translation_pays_the_brevity_penalty():
    assert bleu(["a b c d"], ["a b c d e f"]) == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_a_repeated_word_counts_only_as_often_as_the_reference_has_it():
    score = by_name(score_all(["the the the the"], ["the cat the dog"], bootstrap=0))["BLEU"]
    assert score.detail.startswith("precisions 50.0/")


def test_a_perfect_translation_scores_100_and_no_edits():
    scores = by_name(score_all(REFERENCES, REFERENCES, target_language="de", bootstrap=50))
    assert [scores[name].value for name in ("BLEU", "chrF2", "paper BLEU")] == pytest.approx([100, 100, 100])
    assert scores["BLEU"].interval == pytest.approx((100, 100))
    assert scores["TER"].value == 0
    assert exact_matches(REFERENCES, REFERENCES) == 1
    assert sentence_scores(REFERENCES, REFERENCES) == [100] * len(REFERENCES)


def test_ter_counts_edits_per_reference_word():
    score = by_name(score_all(["a b c d"], ["a x c d e"], bootstrap=0))["TER"]
    assert score.value == pytest.approx(100 * 2 / 5)
    assert score.detail == "2 edits for 5 reference words"
    assert score.lower_is_better


def test_the_detail_of_bleu_names_precisions_brevity_and_lengths():
    score = by_name(score_all(["a b c d"], ["a b c d e f"], bootstrap=0))["BLEU"]
    assert score.detail == "precisions 100.0/100.0/100.0/100.0, brevity penalty 0.607, 4 against 6 tokens"


def test_quick_bleu_equals_the_full_one():
    hypotheses = damage(REFERENCES, 0.2, seed=1)
    assert bleu(hypotheses, REFERENCES) == pytest.approx(score_all(hypotheses, REFERENCES, bootstrap=0)[0].value)


def test_tokenized_text_is_not_tokenized_again():
    hypotheses, references = ["a b, c d e"], ["a b , c d e"]
    assert bleu(hypotheses, references) == pytest.approx(100)
    assert bleu(hypotheses, references, tokenized=True) < 100
    scores = by_name(score_all(hypotheses, references, tokenized=True, bootstrap=0))
    assert "|tok:none|" in scores["BLEU"].signature
    assert "|tok:none+compound-split|" in scores["paper BLEU"].signature


def test_lowercase_forgives_capitals_and_says_so():
    lower = [sentence.lower() for sentence in REFERENCES]
    assert bleu(lower, REFERENCES) < 100
    scores = by_name(score_all(lower, REFERENCES, lowercase=True, bootstrap=0))
    for name in ("BLEU", "chrF2", "paper BLEU"):
        assert scores[name].value == pytest.approx(100)
        assert "|case:lc|" in scores[name].signature


def test_text_that_looks_tokenized_is_pointed_out():
    tokenized = ["Ein Satz ."] * 3
    assert "already tokenised?" in score_all(tokenized, tokenized, bootstrap=0)[0].detail
    assert "already tokenised?" not in score_all(tokenized, tokenized, bootstrap=0, tokenized=True)[0].detail
    assert "already tokenised?" not in score_all(["Ein Satz."], ["Ein Satz."], bootstrap=0)[0].detail


def test_chinese_is_scored_by_characters():
    scores = by_name(score_all(["我爱你们大家"], ["我爱你们两个"], target_language="zh-CN", bootstrap=0))
    assert "|tok:zh|" in scores["BLEU"].signature
    assert scores["BLEU"].value > 40
    assert scores["TER"].value == pytest.approx(100 * 2 / 6)


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_language_whose_word_splitter_is_missing_is_still_scored(language):
    score = score_all(["猫が好き"], ["猫が好き"], target_language=language, bootstrap=0)[0]
    assert score.value == pytest.approx(100)
    assert f"|tok:{language}-mecab" in score.signature or "|tok:char|" in score.signature


def test_sentence_scores_find_the_worst_translation():
    scores = sentence_scores(["Der Hund schläft.", "Xyz!", ""], ["Der Hund schlief.", "Die Katze kommt.", ""])
    assert scores.index(min(scores)) == 1
    assert scores[2] == 100  # rightly empty


def test_exact_matches_ignore_white_space_around_a_sentence():
    assert exact_matches(["a b\r", "c"], ["a b", "d"]) == 0.5


# ---- the paper's BLEU ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a-b-c", "a ##AT##-##AT## b-c"),  # the first match consumes the b
        ("ab-cd-ef", "ab ##AT##-##AT## cd ##AT##-##AT## ef"),
        ("x-ä-y", "x ##AT##-##AT## ä ##AT##-##AT## y"),  # perl sees the two bytes of ä
        ("- a -b c- -", "- a -b c- -"),
        ("--", "--"),
        ("", ""),
    ],
)
def test_compounds_are_split_as_the_papers_script_did(text, expected):
    assert paper_tokens(text) == expected


@pytest.mark.skipif(shutil.which("perl") is None, reason="perl is not installed")
def test_compounds_are_split_as_perl_does():
    lines = ["a-b-c-d", "E-Mail-Adresse", "ä-ö-ü-ß", "a--b", "---", "a -b- c", "日-本-語", "x\u00a0-y", "a-\u2013-b"]
    command = ["perl", "-ple", r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"]
    printed = subprocess.run(command, input="\n".join(lines), capture_output=True, check=True, encoding="utf-8")
    assert [paper_tokens(line) for line in lines] == printed.stdout.split("\n")[: len(lines)]


def test_split_compounds_give_credit_for_the_right_half():
    hypotheses, references = ["Er liest die Haus-Ordnung jeden Tag"], ["Er liest die Haus-Regel jeden Tag"]
    scores = by_name(score_all(hypotheses, references, target_language="de", bootstrap=0))
    assert "precisions 83.3/" in scores["BLEU"].detail  # 5 of 6 words
    assert "precisions 87.5/" in scores["paper BLEU"].detail  # 7 of 8 pieces
    assert scores["paper BLEU"].value > scores["BLEU"].value


@given(
    st.lists(
        st.tuples(*[st.lists(st.sampled_from(["a", "b", "a-b", "c-d-e", "ä-ö"]), max_size=9).map(" ".join)] * 2),
        min_size=1,
        max_size=6,
    )
)
@settings(deadline=None)
def test_the_papers_bleu_equals_an_independent_multi_bleu(pairs):
    hypotheses, references = map(list, zip(*pairs, strict=True))
    ours = by_name(score_all(hypotheses, references, tokenized=True, bootstrap=0))["paper BLEU"].value
    theirs = multi_bleu([paper_tokens(line) for line in hypotheses], [paper_tokens(line) for line in references])
    assert ours == pytest.approx(theirs)


def test_the_papers_bleu_tokenizes_by_moses_for_the_target_language():
    # Moses keeps the French elision with its article and, in German, separates the apostrophe on both sides.
    hypotheses = references = ["l'ami dort bien."]
    french, german = (
        by_name(score_all(hypotheses, references, target_language=language, bootstrap=0))["paper BLEU"]
        for language in ("fr", "de")
    )
    assert french.detail.endswith("5 against 5 tokens")
    assert german.detail.endswith("6 against 6 tokens")


def test_the_papers_bleu_is_not_smoothed():
    scores = by_name(score_all(["a b c x"], ["a b c d"], bootstrap=0))
    assert scores["paper BLEU"].value == pytest.approx(0)
    assert scores["BLEU"].value > 0


# ---- signatures and intervals ----------------------------------------------------------------------------------------


def test_a_signature_says_how_a_score_was_computed():
    hypotheses = damage(REFERENCES, 0.2, seed=1)
    scores = by_name(score_all(hypotheses, REFERENCES, target_language="de", bootstrap=200))
    metric = BLEU()
    metric.corpus_score(hypotheses, [REFERENCES], n_bootstrap=200)
    assert scores["BLEU"].signature == f"BLEU|{metric.get_signature()}"
    paper = scores["paper BLEU"].signature
    assert paper.startswith("paperBLEU|nrefs:1|bs:200|seed:12345|case:mixed|eff:no|tok:moses-de[sacremoses-")
    assert "]+compound-split|smooth:none|version:" in paper


def test_without_a_bootstrap_there_is_no_interval_and_the_signature_does_not_claim_one():
    for score in score_all(REFERENCES, REFERENCES, bootstrap=0):
        assert score.interval is None
        assert "bs:" not in score.signature
        assert "seed:" not in score.signature


def test_the_interval_contains_the_value():
    for score in score_all(damage(REFERENCES, 0.2, seed=2), REFERENCES, target_language="de", bootstrap=300):
        low, high = score.interval
        assert low < score.value < high


def test_intervals_are_those_of_sacrebleu():
    hypotheses = damage(REFERENCES, 0.2, seed=3)
    score = score_all(hypotheses, REFERENCES, bootstrap=300)[0]
    theirs = BLEU().corpus_score(hypotheses, [REFERENCES], n_bootstrap=300)
    # sacreBLEU adds up in float32.
    assert (score.interval[1] - score.interval[0]) / 2 == pytest.approx(theirs._ci, rel=1e-5)


def test_scoring_twice_gives_the_same_numbers():
    hypotheses = damage(REFERENCES, 0.2, seed=4)
    assert score_all(hypotheses, REFERENCES, bootstrap=100) == score_all(hypotheses, REFERENCES, bootstrap=100)


def test_drawing_in_pieces_changes_nothing(monkeypatch):
    hypotheses = damage(REFERENCES, 0.2, seed=5)
    whole = score_all(hypotheses, REFERENCES, bootstrap=101)
    monkeypatch.setattr(evaluate, "_DRAWN_AT_ONCE", 7 * len(REFERENCES))
    assert score_all(hypotheses, REFERENCES, bootstrap=101) == whole


# ---- two systems -----------------------------------------------------------------------------------------------------


def test_a_better_system_is_significantly_better():
    worse, better = damage(REFERENCES, 0.3, seed=6), damage(REFERENCES, 0.1, seed=7)
    for result in compare(worse, better, REFERENCES, names=("old", "new"), bootstrap=200, trials=1000):
        assert result.p_value < 0.01
        assert result.better() == "new"
        low, high = result.interval
        assert low < result.difference < high
        assert (high < 0) if result.name == "TER" else (low > 0)
        assert "|bs:200|ar:1000|seed:12345|" in result.signature


def test_identical_systems_are_not_told_apart():
    hypotheses = damage(REFERENCES, 0.2, seed=8)
    for result in compare(hypotheses, hypotheses, REFERENCES, bootstrap=50, trials=200):
        assert result.p_value == 1
        assert result.difference == 0
        assert result.interval == (0, 0)
        assert result.better() is None


def test_systems_that_differ_by_chance_are_rarely_called_different():
    references, alarms = REFERENCES[:20], 0
    for seed in range(40):
        first, second = damage(references, 0.2, 1000 + seed), damage(references, 0.2, 2000 + seed)
        alarms += compare(first, second, references, tokenized=True, bootstrap=0, trials=99)[0].better() is not None
    # The level of 5 % promises about 2 of 40; more than 6 would happen to a right test three times in a thousand.
    assert alarms <= 6


def test_the_order_of_the_systems_only_turns_the_sign():
    first, second = damage(REFERENCES, 0.25, seed=9), damage(REFERENCES, 0.2, seed=10)
    one = compare(first, second, REFERENCES, bootstrap=100, trials=300)
    other = compare(second, first, REFERENCES, bootstrap=100, trials=300)
    assert [r.difference for r in one] == pytest.approx([-r.difference for r in other])
    assert [r.p_value for r in one] == [r.p_value for r in other]


def test_the_p_value_agrees_with_sacrebleus_randomisation():
    first, second = damage(REFERENCES, 0.25, seed=9), damage(REFERENCES, 0.2, seed=10)
    ours = compare(first, second, REFERENCES, bootstrap=0, trials=4000)[0]
    _, theirs = PairedTest([("first", first), ("second", second)], {"BLEU": BLEU()}, [REFERENCES], "ar", 4000)()
    # Two independent draws of 4000 trials: four standard errors of a share of one half are 0.045.
    assert ours.p_value == pytest.approx(theirs["BLEU"][1].p_value, abs=0.045)
    assert ours.values == pytest.approx((theirs["BLEU"][0].score, theirs["BLEU"][1].score))


def test_lower_is_better_turns_the_verdict():
    result = Comparison("TER", ("a", "b"), (40.0, 30.0), None, 0.001, "TER", lower_is_better=True)
    assert result.better() == "b"
    assert result.better(level=0.001) is None


# ---- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [score_all, bleu, exact_matches, sentence_scores])
def test_unequal_counts_are_an_error_that_names_both(measure):
    with pytest.raises(UserError, match="1,001 translations against 2 references"):
        measure(["a"] * 1001, ["b", "c"])


@pytest.mark.parametrize("measure", [score_all, bleu, exact_matches, sentence_scores])
def test_nothing_to_score_is_an_error(measure):
    with pytest.raises(UserError, match="nothing to score: 0 translations, 0 references"):
        measure([], [])


def test_a_comparison_names_the_system_whose_count_is_wrong():
    with pytest.raises(UserError, match="1 translations of 'new' against 2 references"):
        compare(["a", "b"], ["a"], ["a", "b"], names=("old", "new"))


def test_empty_translations_are_scored_as_worthless_not_refused():
    scores = by_name(score_all(["", ""], ["Ein Satz.", "Noch einer."], bootstrap=10))
    assert [scores[name].value for name in ("BLEU", "chrF2", "TER", "paper BLEU")] == [0, 0, 100, 0]
