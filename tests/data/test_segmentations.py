"""Subword dropout in the store: the same text, cut another way in each epoch, within all limits."""

import numpy as np
import pytest

from regard.data import words as words_module
from regard.data.batches import collate, plan_epoch, steps
from regard.data.prepare import open_prepared, prepare
from regard.data.segmentations import DRAWN, VariedStore
from regard.errors import FileFormatError, UserError
from regard.progress import QuietDisplay
from regard.settings import resolve
from regard.text.vocabulary import Vocabulary

SOURCES = [
    "the quick brown fox jumps",
    "over the lazy dog",
    "while  other foxes jumped",
    "quickly over lazier brown dogs é ▁",
    "x",
    "abcdefghijklmnopqrstuvwxyz" * 3,
]
TARGETS = [text[::-1] for text in SOURCES]


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    def make(**data):
        folder = tmp_path_factory.mktemp("segmentations")
        (folder / "source").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
        (folder / "target").write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
        corpus = [{"source": str(folder / "source"), "target": str(folder / "target")}]
        values = {"train": corpus, "valid": corpus, "vocabulary_size": 370, "subword_dropout": 0.3, **data}
        prepare(resolve({"data": values}), folder / "run", QuietDisplay())
        return folder / "run"

    return make


@pytest.fixture(scope="module")
def run(make_run):
    return make_run()


@pytest.fixture(scope="module")
def prepared(run):
    return open_prepared(run)


def sentences(store, epoch):
    """All sentences of an epoch as tuples of ids, sources and targets in turn."""
    rows = store.in_epoch(np.arange(len(store)), epoch)
    ids, lengths = store.read(np.stack([2 * rows, 2 * rows + 1], axis=1).ravel())
    return [tuple(part.tolist()) for part in np.split(ids, np.cumsum(lengths)[:-1])]


def test_every_epoch_has_the_same_text_cut_another_way(prepared):
    store, decode = prepared.training_store(seed=1), prepared.vocabulary.decode
    texts = [text for pair in zip(SOURCES, TARGETS, strict=True) for text in pair]
    seen = [sentences(store, epoch) for epoch in range(4)]
    assert all([decode(ids) for ids in epoch] == texts for epoch in seen)
    assert len(set(map(tuple, seen))) == 4


def test_the_choice_depends_on_seed_epoch_and_pair_alone(prepared, run):
    one, same, other = (open_prepared(run).training_store(seed) for seed in (1, 1, 2))
    assert sentences(one, 3) == sentences(same, 3)
    assert sentences(one, 3) != sentences(other, 3)
    rows = one.in_epoch(np.array([4, 0, 3]), 3)
    alone = [tuple(one.read(2 * rows[place : place + 1])[0].tolist()) for place in range(3)]
    assert alone == [sentences(one, 3)[2 * row] for row in (4, 0, 3)]


def test_the_usual_segmentation_comes_as_often_as_the_dropout_says(make_run):
    store = open_prepared(make_run(subword_dropout=0.01)).training_store(seed=1)
    natural = [[store.source(row).tolist(), store.target(row).tolist()] for row in range(len(store))]
    flat = [tuple(ids) for pair in natural for ids in pair]
    kept = np.mean([[ours == usual for ours, usual in zip(sentences(store, e), flat, strict=True)] for e in range(20)])
    assert 0.5 < kept < 0.95  # most merges of most sentences happen


def test_lengths_are_those_of_what_is_read(prepared):
    store = prepared.training_store(seed=1)
    for epoch in range(5):
        source, target = store.lengths(store.in_epoch(np.arange(len(store)), epoch))
        assert np.stack([source, target], axis=1).ravel().tolist() == [len(ids) for ids in sentences(store, epoch)]
        assert max(source.max(), target.max()) <= store.longest
    assert [part.tolist() for part in store.lengths(np.empty(0, np.int64))] == [[], []]


def test_pieces_stay_within_the_budget_in_every_epoch(prepared):
    store = prepared.training_store(seed=1)
    for epoch in range(5):
        for step in plan_epoch(store, store.longest, 2, seed=1, epoch=epoch).pool(0):
            for piece in step:
                batch = collate(store, piece)
                assert batch.src.size <= store.longest
                assert batch.tgt[:, 1:].size <= store.longest


def test_steps_resumed_anywhere_read_the_same_sentences(prepared):
    store = prepared.training_store(seed=1)
    budget = store.longest

    def read(start, count):
        plan = steps(store, budget, 2, 1, start)
        taken = [next(plan) for _ in range(count)]
        return [(after, [collate(store, piece).src.tolist() for piece in step]) for after, step in taken]

    whole = read(None, 30)
    assert {after.epoch for after, _ in whole} >= {0, 1, 2}
    for place in (3, 11, 20):
        assert read(whole[place - 1][0], 5) == whole[place : place + 5]


def test_a_sentence_that_would_get_too_long_is_cut_as_usual(make_run):
    longest = open_prepared(make_run()).train.longest
    store = open_prepared(make_run(max_length=longest)).training_store(seed=1)
    assert store.longest == longest
    usual = [(tuple(store.source(row)), tuple(store.target(row))) for row in range(len(store))]
    was_usual = False
    for epoch in range(20):
        found = sentences(store, epoch)
        assert max(map(len, found)) <= longest
        was_usual |= found[10] == usual[5][0] or found[11] == usual[5][1]
    assert was_usual


def test_validation_sees_the_usual_segmentation(prepared):
    ids = [prepared.valid.source(row).tolist() for row in range(len(prepared.valid))]
    assert ids == prepared.vocabulary.encode_batch(SOURCES)
    assert not isinstance(prepared.valid, VariedStore)
    assert not isinstance(prepared.train, VariedStore)


def test_rows_of_all_epochs_are_located(prepared):
    store = prepared.training_store(seed=1)
    assert [store.locate(row)[1] for row in (0, 5, 6, 17)] == [1, 6, 1, 6]


def test_words_past_the_limit_are_cut_subword_by_subword(make_run, monkeypatch):
    monkeypatch.setattr(words_module, "_MOST", 3)
    monkeypatch.setattr(words_module, "_SEQUENCES", 4)
    prepared = open_prepared(make_run())
    store = prepared.training_store(seed=1)
    texts = [text for pair in zip(SOURCES, TARGETS, strict=True) for text in pair]
    assert [prepared.vocabulary.decode(ids) for ids in sentences(store, 2)] == texts
    assert prepared.report.segmentations.words <= 3 + len(prepared.vocabulary)


def test_the_report_says_what_was_drawn(prepared):
    line = next(line for line in prepared.report.lines() if line.startswith("subword dropout 0.3: "))
    assert f"{DRAWN} segmentations of each of {prepared.report.segmentations.words} words" in line
    assert prepared.report.segmentations.growth > 1.05


def test_preparing_twice_gives_the_same_bytes(make_run, run):
    again = make_run()
    for path in (run / "data" / "segmentations").glob("*.bin"):
        assert (again / "data" / "segmentations" / path.name).read_bytes() == path.read_bytes()


def test_without_dropout_there_is_nothing_beside_the_store(make_run):
    run = make_run(subword_dropout=0.0)
    assert not (run / "data" / "segmentations").exists()
    prepared = open_prepared(run)
    assert prepared.training_store(seed=1) is prepared.train


def settings_of(run, **data):
    corpus = [{"source": str(run.parent / "source"), "target": str(run.parent / "target")}]
    values = {"train": corpus, "valid": corpus, "vocabulary_size": 370, "subword_dropout": 0.3, **data}
    return resolve({"data": values})


def test_another_dropout_is_other_data(make_run):
    with pytest.raises(UserError, match=r"data\.subword_dropout: was 0\.3, now 0\.1"):
        prepare(settings_of(run := make_run(), subword_dropout=0.1), run, QuietDisplay())


@pytest.mark.parametrize("name", ["words.bin", "offsets.bin", "subwords.bin", "starts.bin"])
def test_a_flipped_bit_is_found(make_run, name):
    run = make_run()
    prepare(settings_of(run), run, QuietDisplay())  # which finds nothing wrong yet
    path = run / "data" / "segmentations" / name
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)
    with pytest.raises(FileFormatError, match=r"segmentations\S*: damaged"):
        prepare(settings_of(run), run, QuietDisplay())


@pytest.mark.parametrize("change", ["words", "subwords"])
def test_numbers_that_point_nowhere_are_found_when_data_is_opened(make_run, change):
    run = make_run()
    path = run / "data" / "segmentations" / f"{change}.bin"
    path.write_bytes(b"\xff" * len(path.read_bytes()))
    with pytest.raises(FileFormatError, match="damaged"):
        open_prepared(run)


def test_a_vocabulary_that_merges_nothing_is_refused(make_run, tmp_path):
    import sentencepiece

    from regard.tokens import END, PAD, START, UNKNOWN

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SOURCES[:5] * 9),
        model_prefix=str(tmp_path / "unigram"),
        model_type="unigram",
        vocab_size=300,
        hard_vocab_limit=False,
        byte_fallback=True,
        minloglevel=2,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=START,
        eos_id=END,
    )
    vocabulary = tmp_path / "unigram.model"
    assert not Vocabulary.load(vocabulary).is_byte_pair_encoding
    with pytest.raises(UserError, match=r"data\.subword_dropout: .*unigram\.model is no byte-pair encoding"):
        make_run(vocabulary=str(vocabulary))
