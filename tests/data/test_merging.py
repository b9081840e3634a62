"""Merging many words at once: SentencePiece's own segmentations, and BPE-dropout as it is defined."""

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.merging import Merges
from regard.text.vocabulary import Vocabulary

# Letters a, b, c and what they make; a higher score is merged first.
SUBWORDS = {5: ("a", -9.0), 6: ("b", -9.1), 7: ("c", -9.2), 8: ("ab", -2.0), 9: ("bc", -1.0), 10: ("abc", -3.0)}
BYTE = 4


@pytest.fixture(scope="module")
def merges():
    return Merges(SUBWORDS, size=11)


def cut(merges, words, *options):
    """Words given as text, cut; as text again."""
    ids = {text: token for token, (text, _) in SUBWORDS.items()}
    filled = merges.fill([[ids[letter] for letter in word] for word in words])
    return [
        " ".join(SUBWORDS[token][0] for token in row if token != merges.nothing)
        for row in merges.merge(filled, *options).tolist()
    ]


def naive(word, dropout, random):
    """Algorithm 1 of Provilkov and others, word by word."""
    scores = dict(SUBWORDS.values())
    parts = list(word)
    while True:
        pairs = [
            (-scores[left + right], place)
            for place, (left, right) in enumerate(pairwise(parts))
            if left + right in scores and random.random() >= dropout
        ]
        if not pairs:
            return " ".join(parts)
        place = min(pairs)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]


def test_the_best_pair_is_merged_first_and_the_leftmost_of_equals(merges):
    words = {"abc": "abc", "bbc": "b bc", "aab": "a ab", "abab": "ab ab", "bcbc": "bc bc", "c": "c", "": ""}
    assert cut(merges, list(words)) == list(words.values())
    assert cut(merges, ["abcab"], 0.999, np.random.SFC64(1)) == ["a b c a b"]


@given(st.lists(st.text("abc", max_size=9), max_size=12))
def test_many_words_at_once_are_cut_as_each_alone(merges, words):
    assert cut(merges, words) == [naive(word, 0.0, Random(1)) for word in words]


def test_a_byte_is_a_letter_that_nothing_is_merged_with(merges):
    letters = merges.spell([8, BYTE, 9])
    assert letters == [5, 6, BYTE, 6, 7]
    assert merges.merge(merges.fill([letters])).tolist() == [[8, BYTE, 9, merges.nothing, merges.nothing]]


def test_every_segmentation_comes_as_often_as_the_definition_says(merges):
    draws = 20_000
    for word in ("abc", "aabcb"):
        ours = Counter(cut(merges, [word] * draws, 0.3, np.random.SFC64(5)))
        random = Random(5)
        expected = Counter(naive(word, 0.3, random) for _ in range(draws))
        assert len(ours) > 2
        for found in ours.keys() | expected.keys():
            # Five standard deviations of the difference of two such counts.
            assert abs(ours[found] - expected[found]) <= 5 * (2 * max(ours[found], expected[found])) ** 0.5


def test_the_same_seed_draws_the_same(merges):
    words = ["abcabc"] * 50
    one, same, other = (cut(merges, words, 0.5, np.random.SFC64(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_real_words_are_cut_as_sentencepiece_cuts_them():
    text = "the quick brown fox jumps over the lazy dog while other foxes jumped quickly over lazier brown dogs"
    vocabulary = Vocabulary.train([text] * 3 + text.split(), 380)
    merges = Merges(vocabulary.scored_subwords(), len(vocabulary))
    words = [
        vocabulary.encode(word)[:-1] for word in [*text.split(), "foxtrot", "over-quick", "xylophon-é", "überquick"]
    ]
    merged = merges.merge(merges.fill([merges.spell(word) for word in words])).tolist()
    assert [[token for token in row if token != merges.nothing] for row in merged] == words
    assert any(len(word) == 1 for word in words)
