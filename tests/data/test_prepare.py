import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.data import prepare as preparing
from regard.data.batches import padding
from regard.data.prepare import Prepared, prepare
from regard.errors import CorpusError, FileFormatError, UserError
from regard.progress import PlainDisplay, QuietDisplay
from regard.settings import Corpus, DataSettings, Settings
from regard.text.vocabulary import Vocabulary

WORDS = ["the", "old", "dog", "sees", "a", "green", "house", "and", "one", "quick", "cat", "runs", "over", "bridges"]


def sentence(number: int) -> str:
    return " ".join([*(WORDS[number * step % len(WORDS)] for step in range(1, 4 + number % 5)), str(number)])


def write_corpus(folder: Path, name: str, pairs: list[tuple[str, str]], **options: Any) -> Corpus:
    source, target = folder / f"{name}.en", folder / f"{name}.de"
    source.write_text("".join(f"{pair[0]}\n" for pair in pairs), encoding="utf-8")
    target.write_text("".join(f"{pair[1]}\n" for pair in pairs), encoding="utf-8")
    return Corpus(source=source, target=target, **options)


PAIRS = [(sentence(number), sentence(number + 100).upper()) for number in range(300)]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path, "train", PAIRS)


def run(out: Path, *train: Corpus, **options: Any) -> Prepared:
    options = {"vocabulary_size": 350, **options}
    return prepare(Settings(data=DataSettings(train=train, **options)), out, QuietDisplay())


def texts(prepared: Prepared) -> list[tuple[str, str]]:
    decode, store = prepared.vocabulary.decode, prepared.train
    return [(decode(store.source(row)), decode(store.target(row))) for row in range(len(store))]


# ---- what is written -------------------------------------------------------------------------------------------------


def test_every_pair_is_in_the_store_in_its_order(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "CHUNK", 7)
    prepared = run(tmp_path / "run", corpus)
    assert texts(prepared) == PAIRS
    assert prepared.train.locate(41) == (str(corpus.source), 42)
    assert (prepared.report.train.read, prepared.report.train.kept) == (300, 300)
    assert prepared.valid is None


def test_the_size_of_a_chunk_changes_nothing(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(tmp_path / "whole", corpus)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    parts = run(tmp_path / "parts", corpus)
    assert parts.train.fingerprint == whole.train.fingerprint
    assert parts.report == whole.report


def test_several_corpora_lie_one_after_the_other_with_their_weights(tmp_path: Path) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{source}\t{target}\tmore\n" for source, target in PAIRS[200:]), encoding="utf-8")
    first = write_corpus(tmp_path, "first", PAIRS[:200], weight=2.0)
    prepared = run(tmp_path / "run", first, Corpus(pairs=table, weight=0.5))
    assert texts(prepared) == PAIRS
    assert [(c.name, c.weight, c.first, c.count) for c in prepared.train.corpora] == [
        (str(first.source), 2.0, 0, 200),
        (str(table), 0.5, 200, 100),
    ]


def test_a_given_vocabulary_is_used(tmp_path: Path, corpus: Corpus) -> None:
    vocabulary = Vocabulary.train([sentence(1), "other words"], size=290)
    vocabulary.save(tmp_path / "given.spm")
    prepared = run(tmp_path / "run", corpus, vocabulary=tmp_path / "given.spm")
    assert prepared.vocabulary.fingerprint == vocabulary.fingerprint
    assert texts(prepared) == PAIRS


def test_the_vocabulary_is_learned_from_an_even_sample(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "train", [(f"s{number}", f"t{number}") for number in range(10)])
    sample = list(preparing._sample([corpus], 10, 3))
    assert sample == ["s3", "t3", "s6", "t6", "s9", "t9"]
    assert len(list(preparing._sample([corpus], 10, 99))) == 20


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_pairs_are_dropped_for_a_reason_that_is_counted(tmp_path: Path) -> None:
    pairs = [
        *PAIRS[:100],
        ("", "x"),
        ("x", " \t"),
        ("", ""),
        (sentence(3) * 20, sentence(3) * 20),
        ("cat", sentence(4) * 2),
        PAIRS[5],
        PAIRS[5],
    ]
    corpus = write_corpus(tmp_path, "train", pairs)
    kept = run(tmp_path / "kept", corpus, max_length=40, max_ratio=3.0)
    part = kept.report.train
    assert (part.read, part.kept, part.repeats, part.duplicates) == (107, 102, 2, 0)
    assert (part.empty, part.too_long, part.ratio) == (3, 1, 1)
    assert texts(kept) == [*PAIRS[:100], PAIRS[5], PAIRS[5]]
    assert kept.train.locate(101) == (str(corpus.source), 107)

    dropped = run(tmp_path / "dropped", corpus, max_length=40, max_ratio=3.0, drop_duplicates=True)
    part = dropped.report.train
    assert (part.read, part.kept, part.repeats, part.duplicates) == (107, 100, 0, 2)
    assert texts(dropped) == PAIRS[:100]


def test_no_pair_left_is_an_error_with_the_numbers(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "train", [(sentence(1), ""), (sentence(2), sentence(2))])
    with pytest.raises(UserError, match="no pair is left to train on") as caught:
        run(tmp_path / "run", corpus, max_length=2)
    assert "training: kept 0 of 2 pairs" in str(caught.value)
    assert "dropped 1: empty on one side" in str(caught.value)
    assert "dropped 1: longer than 2 tokens" in str(caught.value)


@pytest.mark.parametrize("content", [[], [("", "")]])
def test_an_empty_corpus_is_an_error(tmp_path: Path, content: list[tuple[str, str]]) -> None:
    with pytest.raises(UserError, match="no text"):
        run(tmp_path / "run", write_corpus(tmp_path, "train", content))


def test_no_corpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.train: no training corpus"):
        run(tmp_path / "run")


# ---- validation ------------------------------------------------------------------------------------------------------


def test_validation_loses_empty_and_too_long_pairs_only(tmp_path: Path, corpus: Corpus) -> None:
    pairs = [("new cat", sentence(7) * 2), ("", "x"), ("new", "cat"), ("new", "cat"), ("long " * 40, "x"), PAIRS[0]]
    valid = write_corpus(tmp_path, "valid", pairs)
    options: dict[str, Any] = {"max_length": 60, "max_ratio": 2.0, "drop_duplicates": True}
    prepared = run(tmp_path / "run", corpus, valid=(valid,), **options)
    part = prepared.report.valid
    assert part is not None
    assert prepared.valid is not None
    assert len(prepared.valid) == part.kept == 4
    assert (part.read, part.empty, part.too_long, part.ratio, part.duplicates) == (6, 1, 1, 0, 0)
    assert (part.repeats, part.leaked) == (1, 1)
    assert "  warning: 1 of those kept are in the training text as well" in prepared.report.lines()


def test_a_validation_set_of_which_nothing_is_left_is_none(tmp_path: Path, corpus: Corpus) -> None:
    prepared = run(tmp_path / "run", corpus, valid=(write_corpus(tmp_path, "valid", [("", "")]),))
    assert prepared.valid is None
    assert "validation: kept 0 of 1 pairs" in prepared.report.lines()


def test_the_size_of_chunks_changes_nothing(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    valid = write_corpus(tmp_path, "valid", [*PAIRS[:5], ("new", "neu"), ("new", "neu"), ("", "empty")])
    options = {"valid": (valid,), "vocabulary_sentences": 100, "drop_duplicates": True}
    one = run(tmp_path / "one", corpus, corpus, **options)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    other = run(tmp_path / "other", corpus, corpus, **options)
    assert other.vocabulary.fingerprint == one.vocabulary.fingerprint
    assert other.train.fingerprint == one.train.fingerprint
    assert other.report == one.report


@pytest.mark.parametrize("cores", [1, 3, 100])
def test_the_number_of_threads_changes_nothing(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    one = run(tmp_path / "one", corpus)
    monkeypatch.setattr(preparing, "CHUNK", 7)
    monkeypatch.setattr(preparing, "cores", lambda: cores)
    other = run(tmp_path / "other", corpus)
    assert other.train.fingerprint == one.train.fingerprint
    assert texts(other) == PAIRS


# ---- again -----------------------------------------------------------------------------------------------------------


def test_running_twice_works_once(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(tmp_path / "run", corpus)
    monkeypatch.setattr(preparing, "read_pair_chunks", None)
    after = run(tmp_path / "run", corpus)
    assert after.train.fingerprint == before.train.fingerprint
    assert after.vocabulary.fingerprint == before.vocabulary.fingerprint
    assert after.report == before.report


def test_a_corpus_may_be_moved_and_touched(tmp_path: Path, corpus: Corpus) -> None:
    before = run(tmp_path / "run", corpus)
    (tmp_path / "elsewhere").mkdir()
    moved = write_corpus(tmp_path / "elsewhere", "train", PAIRS)
    assert run(tmp_path / "run", moved).train.fingerprint == before.train.fingerprint


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda corpus: {"max_length": 99}, "data.max_length: was 256, now 99"),
        (lambda corpus: {"valid": (corpus,)}, "data.valid[0].source: was not there, now "),
        (lambda corpus: corpus.source.write_text("other\n"), "train.en has changed"),
    ],
)
def test_data_does_not_change_under_a_run(
    tmp_path: Path, corpus: Corpus, change: Callable[[Corpus], Any], told: str
) -> None:
    run(tmp_path / "run", corpus)
    changed = change(corpus)
    with pytest.raises(UserError) as caught:
        run(tmp_path / "run", corpus, **(changed if isinstance(changed, dict) else {}))
    assert "made from something else" in str(caught.value)
    assert "another --out" in str(caught.value)
    assert told in str(caught.value)


def test_a_vocabulary_that_was_replaced_is_found(tmp_path: Path, corpus: Corpus) -> None:
    run(tmp_path / "run", corpus)
    Vocabulary.train(["something else"], size=300).save(tmp_path / "run" / "vocabulary.spm")
    with pytest.raises(FileFormatError, match="not the vocabulary"):
        run(tmp_path / "run", corpus)


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_mistake_in_a_corpus_leaves_nothing_that_looks_whole(tmp_path: Path, corpus: Corpus) -> None:
    broken = write_corpus(tmp_path, "broken", [("one", "eins\nzwei")])
    with pytest.raises(CorpusError, match=r"broken\.en: ends after 1 line"):
        run(tmp_path / "run", corpus, broken)
    assert list((tmp_path / "run" / "data").iterdir()) == []
    assert texts(run(tmp_path / "run", corpus)) == PAIRS


def test_a_missing_corpus_says_so(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"nowhere\.tsv: can't be read: No such file"):
        run(tmp_path / "run", Corpus(pairs=tmp_path / "nowhere.tsv"))


def test_a_corpus_that_grows_while_it_is_read_is_an_error(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Vocabulary.train

    def train_and_append(*arguments: Any) -> Vocabulary:
        for path in corpus.files:
            path.write_text(path.read_text() + "more\n")
        return train(*arguments)

    monkeypatch.setattr(Vocabulary, "train", train_and_append)
    with pytest.raises(CorpusError, match="has grown while it was read"):
        run(tmp_path / "run", corpus)


def test_a_killed_preparation_starts_again(tmp_path: Path, corpus: Corpus) -> None:
    child = """if True:
        import os, sys
        from pathlib import Path
        from regard.data import prepare
        from regard.progress import QuietDisplay
        from regard.settings import Corpus, DataSettings, Settings
        prepare.padding = lambda *_: os.kill(os.getpid(), 9)
        train = (Corpus(source=sys.argv[1], target=sys.argv[2]),)
        settings = Settings(data=DataSettings(train=train, vocabulary_size=350))
        prepare.prepare(settings, Path(sys.argv[3]), QuietDisplay())
    """
    command = [sys.executable, "-c", child, *map(str, corpus.files), str(tmp_path / "run")]
    assert subprocess.run(command, check=False).returncode == -9
    assert (tmp_path / "run" / "data" / "train").is_dir()
    assert texts(run(tmp_path / "run", corpus)) == PAIRS


# ---- the report ------------------------------------------------------------------------------------------------------


def test_the_report_is_said_and_written(tmp_path: Path, corpus: Corpus) -> None:
    stream = io.StringIO()
    settings = Settings(data=DataSettings(train=(corpus,), vocabulary_size=350))
    report = prepare(settings, tmp_path / "run", PlainDisplay(stream)).report
    said = stream.getvalue().splitlines()
    assert said[:3] == ["reading …", "learning the vocabulary (600 sentences) …", "encoding (300 pairs) …"]
    assert said[3:] == report.lines()
    assert json.loads((tmp_path / "run" / "data" / "report.json").read_text()) == report.to_dict()
    assert report.vocabulary_size <= 350
    assert report.train.longest_source >= 4
    assert 0 <= report.byte_share < 0.05


@pytest.mark.parametrize("name", ["multi30k", "tatoeba"])
def test_padding_stays_under_five_percent_on_real_corpora(shared_data: Path, tmp_path: Path, name: str) -> None:
    captions = {
        side: shared_data / "multi30k" / f"train.{code}.gz" for side, code in (("source", "en"), ("target", "de"))
    }
    corpora = {"multi30k": captions, "tatoeba": {"pairs": shared_data / "tatoeba" / "eng-deu.tsv.gz"}}
    prepared = run(tmp_path / "run", Corpus(**corpora[name]), vocabulary_size=8000, vocabulary_sentences=20_000)
    assert prepared.report.train.kept == prepared.report.train.read > 28_000
    assert padding(prepared.train, 2048) < 0.05
    assert padding(prepared.train, 4096) < 0.05
