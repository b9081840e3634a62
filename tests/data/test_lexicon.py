"""IBM Model 1 over a token store: right, and in bounded memory."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import lexicon
from regard.data.lexicon import Lexicon, frequent_targets, learn_lexicon
from regard.data.store import Store, StoreWriter
from regard.tokens import END

SIZE = 40
NOTHING = np.empty(0, np.int64)

Pairs = list[tuple[list[int], list[int]]]
sentence = st.lists(st.integers(END + 1, 9), max_size=4).map(lambda tokens: [*tokens, END])
pairs = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6)


def write(folder: Path, corpus: Pairs) -> Store:
    with StoreWriter(folder, "fingerprint", SIZE) as writer:
        writer.begin_corpus("only")
        writer.add([source for source, _ in corpus], [target for _, target in corpus], range(1, len(corpus) + 1))
    return Store.open(folder)


def cipher(count: int, seed: int = 0) -> Pairs:
    """Sentences of the tokens 4 to 19, and 'translations' of 20 more each, in another order, with a 39 thrown in."""
    chance = np.random.default_rng(seed)
    sources = [chance.integers(4, 20, chance.integers(1, 8)) for _ in range(count)]
    return [([*one.tolist(), END], [39, *chance.permutation(one + 20).tolist(), END]) for one in sources]


def plain_model_1(corpus: Pairs, without: set[int]) -> dict[tuple[int, int], float]:
    """The same in plain Python."""
    counts: dict[tuple[int, int], float] = defaultdict(float)
    for source, target in corpus:
        for one in target:
            for other in source:
                counts[other, one] += one not in without
    probability = normalised({link: count for link, count in counts.items() if count})
    for _ in range(lexicon._ROUNDS):
        expected: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in corpus:
            for one in (one for one in target if one not in without):
                total = sum(probability[other, one] for other in source)
                for other in source:
                    expected[other, one] += probability[other, one] / total
        probability = normalised(expected)
    return probability


def normalised(counts: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    totals: dict[int, float] = defaultdict(float)
    for (source, _), count in counts.items():
        totals[source] += count
    return {link: count / totals[link[0]] for link, count in counts.items()}


def as_dict(found: Lexicon) -> dict[tuple[int, int], float]:
    links = zip(found.source.tolist(), found.target.tolist(), strict=True)
    return dict(zip(links, found.probability.tolist(), strict=True))


@settings(max_examples=20)
@given(corpus=pairs, without=st.sets(st.integers(END, 9)))
def test_it_is_model_1(tmp_path_factory: pytest.TempPathFactory, corpus: Pairs, without: set[int]) -> None:
    store = write(tmp_path_factory.mktemp("lexicon") / "store", corpus)
    found = as_dict(learn_lexicon(store, SIZE, np.array(sorted(without), np.int64)))
    assert found == pytest.approx(plain_model_1(corpus, without))
    assert all(one < other for one, other in pairwise(found))


def test_the_likeliest_target_of_a_token_is_its_translation(tmp_path: Path) -> None:
    best = learn_lexicon(write(tmp_path / "store", cipher(300)), SIZE, NOTHING).likeliest(1)
    translations = dict(zip(best.source.tolist(), best.target.tolist(), strict=True))
    assert translations == {END: 39} | {token: token + 20 for token in range(4, 20)}


def test_a_token_has_no_more_than_the_wanted_targets_and_they_are_its_likeliest(tmp_path: Path) -> None:
    found = learn_lexicon(write(tmp_path / "store", cipher(50)), SIZE, NOTHING)
    few = as_dict(found.likeliest(3))
    for token in range(4, 20):
        all_of_it = sorted((share for (source, _), share in as_dict(found).items() if source == token), reverse=True)
        kept = sorted((share for (source, _), share in few.items() if source == token), reverse=True)
        assert kept == all_of_it[:3]


@pytest.mark.parametrize("chunk", [100, 1000])
def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    store = write(tmp_path / "store", cipher(100))
    whole = as_dict(learn_lexicon(store, SIZE, NOTHING))
    monkeypatch.setattr(lexicon, "_CHUNK", chunk)
    monkeypatch.setattr(lexicon, "_BLOCK", 7)
    assert len(list(lexicon._chunks(store))) > 5
    assert as_dict(learn_lexicon(store, SIZE, NOTHING)) == pytest.approx(whole)


def test_a_large_corpus_is_sampled_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write(tmp_path / "store", cipher(400))
    links = sum(int(links.sum()) for _, links in lexicon._count_links(store, 1))
    monkeypatch.setattr(lexicon, "_MOST_LINKS", links // 2 + 1)
    monkeypatch.setattr(lexicon, "_BLOCK", 11)
    assert np.concatenate(list(lexicon._chunks(store))).tolist() == list(range(0, 400, 2))
    best = learn_lexicon(store, SIZE, NOTHING).likeliest(1)
    assert (best.target[1:] == best.source[1:] + 20).all()


def test_a_full_table_forgets_its_rarest_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write(tmp_path / "store", cipher(400))
    monkeypatch.setattr(lexicon, "_CHUNK", 500)
    monkeypatch.setattr(lexicon, "_FULL", 200)
    found = learn_lexicon(store, SIZE, NOTHING)
    assert len(found.source) <= 200
    assert np.bincount(found.source).max() <= 200 // SIZE
    best = found.likeliest(1)
    assert (best.target[1:] == best.source[1:] + 20).all()


def test_a_pair_with_more_links_than_fit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write(tmp_path / "store", [([5, END], [25, END]), ([6] * 50, [26] * 50)])
    monkeypatch.setattr(lexicon, "_CHUNK", 100)
    assert set(as_dict(learn_lexicon(store, SIZE, NOTHING))) == {(5, 25), (5, END), (END, 25), (END, END)}
    monkeypatch.setattr(lexicon, "_CHUNK", 1)
    assert as_dict(learn_lexicon(store, SIZE, NOTHING)) == {}


def test_the_most_frequent_targets(tmp_path: Path) -> None:
    store = write(tmp_path / "store", [([5, 5, 5, END], [30, 31, 30, END]), ([5, END], [31, 30, END])])
    assert frequent_targets(store, SIZE, 1).tolist() == [30]
    assert frequent_targets(store, SIZE, 2).tolist() == [END, 30]  # of two that are as frequent, the first
    assert frequent_targets(store, SIZE, 30).tolist() == [END, 30, 31]
    assert frequent_targets(store, SIZE, 0).tolist() == []
