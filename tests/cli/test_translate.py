"""`regard translate`: N lines in, N lines out, whatever the lines are and whatever happens to them."""

import gzip
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.translator import Translator, load

from .running import REGARD, Regard

ODD = "  \tabc123.!\r\f\v\x00\x1c\x85\u2028\u2029\ufeff\u3000▁|äß中🦊\ufffd"


@pytest.fixture(scope="session")
def translator(odd_model: Path) -> Translator:
    return load(odd_model, device="cpu")


# ---- N lines in, N lines out -----------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.text(ODD, max_size=40), max_size=12),
    end=st.sampled_from(["", "\n"]),
    window=st.integers(1, 13),
    extra=st.sampled_from([(), ("--scores",), ("--alignments",), ("--json",), ("--n-best", "1"), ("--sample",)]),
)
def test_as_many_lines_come_out_as_go_in(
    regard: Regard, odd_model: Path, lines: list[str], end: str, window: int, extra: tuple[str, ...]
) -> None:
    text = "\n".join(lines) + end if lines else ""
    expected = text.count("\n") + (not text.endswith("\n") and bool(text))
    ended = regard("translate", odd_model, "--window", window, "--beam", "2", *extra, stdin=text)
    assert ended.code == 0
    assert len(ended.lines) == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.binary(max_size=80))
def test_bytes_of_any_kind_keep_their_lines(regard: Regard, odd_model: Path, data: bytes) -> None:
    if data.startswith(b"\x1f\x8b"):
        data = b"x" + data
    ended = regard("translate", odd_model, "--beam", "1", stdin=data)
    assert ended.code == 0
    data = data.removeprefix(b"\xef\xbb\xbf")
    assert len(ended.lines) == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def test_blank_lines_become_empty_lines_and_the_rest_stays_in_place(regard: Regard, odd_model: Path) -> None:
    alone = regard("translate", odd_model, stdin="a 1").lines
    ended = regard("translate", odd_model, stdin="\na 1\r\n   \n\t\u2028\x85\n\na 1")
    assert ended.lines == ["", *alone, "", "", "", *alone]
    assert alone != [""]


def test_a_byte_order_mark_is_dropped_and_line_separators_are_text(regard: Regard, odd_model: Path) -> None:
    plain = regard("translate", odd_model, stdin="a 1\n")
    assert regard("translate", odd_model, stdin=b"\xef\xbb\xbfa 1\n").out == plain.out
    sources = [
        json.loads(line)["source"] for line in regard("translate", odd_model, "--json", stdin="a\u2028b\fc\n").lines
    ]
    assert sources == ["a\u2028b\fc"]


def test_nothing_in_nothing_out(regard: Regard, odd_model: Path) -> None:
    assert regard("translate", odd_model).out == ""


def test_what_is_not_utf8_is_replaced_and_its_line_named(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\xff\n\xc3\nd\n")
    ended = regard("translate", odd_model, path, "--json")
    assert [json.loads(line)["source"] for line in ended.lines] == ["a", "b\ufffd", "\ufffd", "d"]
    assert f"{path}, line 2: not UTF-8" in ended.err
    assert f"{path}, line 3: not UTF-8" in ended.err
    assert ended.code == 0
    assert "line 1: not UTF-8" in regard("translate", odd_model, "--progress", "quiet", stdin=b"\xff\n").err


def test_files_follow_each_other_plain_or_gzip_and_a_dash_is_standard_input(
    regard: Regard, odd_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "one").write_text("a 1\n\nb 2")  # no final line end: the next file begins a line of its own
    (tmp_path / "two").write_bytes(gzip.compress(b"\xef\xbb\xbfc 3\nd 4\n"))
    whole = regard("translate", odd_model, stdin="a 1\n\nb 2\nc 3\nd 4\ne 5\n")
    ended = regard("translate", odd_model, tmp_path / "one", tmp_path / "two", "-", stdin="e 5\n")
    assert ended.out == whole.out
    assert regard("translate", odd_model, stdin=gzip.compress(b"a 1\n\nb 2\n")).lines == whole.lines[:3]


def test_a_file_to_write_to_gets_what_standard_output_would(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    plain = regard("translate", odd_model, stdin="a 1\nb 2\n")
    ended = regard("translate", odd_model, "-o", tmp_path / "out", stdin="a 1\nb 2\n")
    assert ended.out == ""
    assert (tmp_path / "out").read_text() == plain.out


@pytest.mark.parametrize("lines", range(6))
@pytest.mark.parametrize("window", [1, 2, 3, 2048])
def test_no_line_is_lost_around_the_end_of_a_window(regard: Regard, odd_model: Path, lines: int, window: int) -> None:
    text = [f"{'abcdef'[number]} {number}" for number in range(lines)]
    whole = [regard("translate", odd_model, "--beam", "1", stdin=line).lines[0] for line in text]
    assert regard("translate", odd_model, "--beam", "1", "--window", window, stdin="\n".join(text)).lines == whole


@pytest.mark.parametrize("lines", [2047, 2048, 2049])
def test_no_line_is_lost_around_the_end_of_the_real_window(regard: Regard, odd_model: Path, lines: int) -> None:
    text = "".join("a\n" if number % 512 == 0 else "\n" for number in range(lines))
    found = regard("translate", odd_model, "--beam", "1", stdin=text).lines
    assert len(found) == lines
    assert [bool(line) for line in found] == [number % 512 == 0 for number in range(lines)]


def test_windows_are_also_bounded_in_characters(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"{'a ' * (number % 7)}{number}\n" for number in range(30))
    whole = regard("translate", odd_model, stdin=text)
    for characters in (1, 2, 10, 31):
        monkeypatch.setattr("regard.translator._WINDOW_CHARACTERS", characters)
        assert regard("translate", odd_model, stdin=text).out == whole.out


def test_a_very_long_line_is_split_and_nothing_of_it_is_lost(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def echo(self: Translator, units: Any, options: Any) -> Any:
        from regard.translation import Candidate

        assert all(len(unit.tokens) <= 30 for unit in units)
        texts = [self.vocabulary.decode(unit.tokens) for unit in units]
        read.extend(texts)
        return [[Candidate(text, -1.0)] for text in texts]

    monkeypatch.setattr(Translator, "_search", echo)
    sentences = [f"word{number} and a 1, b 2." for number in range(2000)]
    line = "  ".join(sentences)  # 10,000 words
    ended = regard("translate", odd_model, stdin=f"{line}\nshort\n")
    assert ended.lines == [line, "short"]
    assert len(read) > 1000


def test_a_line_without_any_space_is_split_as_well(regard: Regard, odd_model: Path) -> None:
    ended = regard("translate", odd_model, "--beam", "1", stdin=f"{'a' * 500}\nb\n")
    assert ended.code == 0
    assert len(ended.lines) == 2


def test_a_model_that_writes_line_ends_and_tabs_breaks_no_line(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.text.vocabulary.Vocabulary.decode", lambda self, ids: "one\ntwo\tthree\r")
    assert regard("translate", odd_model, stdin="a\nb\n").lines == ["one two\tthree\r"] * 2
    assert [line.count("\t") for line in regard("translate", odd_model, "--scores", stdin="a\nb\n").lines] == [1, 1]
    answer = json.loads(regard("translate", odd_model, "--json", stdin="a\n").out)
    assert answer["text"] == "one\ntwo\tthree\r"


# ---- failures --------------------------------------------------------------------------------------------------------


def test_a_line_that_fails_is_empty_named_and_counted(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Translator._search

    def fail(self: Translator, units: Any, options: Any) -> Any:
        if any("bad" in self.vocabulary.decode(unit.tokens) for unit in units):
            raise RuntimeError("no luck\nat all")
        return search(self, units, options)

    whole = regard("translate", odd_model, stdin="a 1\nb 2\n")
    monkeypatch.setattr(Translator, "_search", fail)
    for mode in ("plain", "quiet"):
        ended = regard("translate", odd_model, "--progress", mode, stdin="a 1\nbad\nb 2\nbad too\n")
        assert ended.code == 1
        assert ended.lines == [whole.lines[0], "", whole.lines[1], ""]
        assert "line 2 could not be translated: RuntimeError: no luck\n" in ended.err
        assert "line 4 could not be translated" in ended.err
        assert "2 lines could not be translated; an empty line stands for each" in ended.err
    answers = [json.loads(line) for line in regard("translate", odd_model, "--json", stdin="a 1\nbad\n").lines]
    assert "error" not in answers[0]
    assert (answers[1]["text"], answers[1]["score"], answers[1]["error"]) == ("", None, "RuntimeError: no luck")


def test_mistakes_are_found_before_anything_is_written(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "out", tmp_path / "text"
    out.write_text("precious\n")
    text.write_text("a\n")
    for arguments, told in (
        ([tmp_path / "missing"], "no such file"),
        ([text, tmp_path], "is a folder"),
        ([text, "--n-best", "5", "--beam", "2"], "n_best = 5 needs a beam"),
        ([text, "--sample", "--temperature", "0"], "temperature = 0.0"),
        ([text, "--temperature", "0.5"], "are for --sample"),
        ([out], "is read and written at the same time"),
    ):
        ended = regard("translate", odd_model, *arguments, "-o", out)
        assert ended.code == 2
        assert told in ended.err
        assert out.read_text() == "precious\n"


def test_standard_input_is_not_overwritten_either(odd_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a\n")
    with text.open() as file:
        done = subprocess.run(
            [REGARD, "translate", odd_model, "-o", text], stdin=file, capture_output=True, text=True, check=False
        )
    assert done.returncode == 2
    assert "is read and written at the same time" in done.stderr
    assert text.read_text() == "a\n"


@pytest.mark.parametrize("out", ["missing/folder/out", "."])
def test_an_output_that_cannot_be_written_is_named(regard: Regard, odd_model: Path, tmp_path: Path, out: str) -> None:
    ended = regard("translate", odd_model, "-o", tmp_path / out, stdin="a\n")
    assert ended.code == 2
    assert f"{tmp_path / out}: can't be written" in ended.err


def test_a_damaged_gzip_file_is_named(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a 1\n" * 1000)[:-20])
    ended = regard("translate", odd_model, path, "--beam", "1")
    assert ended.code == 2
    assert f"{path}: damaged or incomplete gzip file" in ended.err


def test_an_endless_line_is_refused(regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.lines.MAX_LINE_BYTES", 100)
    ended = regard("translate", odd_model, stdin="a\n" + "b" * 101)
    assert ended.code == 2
    assert "standard input, line 2: longer than 100 bytes" in ended.err


# ---- formats ---------------------------------------------------------------------------------------------------------


def test_columns_are_separated_by_tabs(regard: Regard, odd_model: Path, translator: Translator) -> None:
    found = translator.translate("a 1", alignments=True)
    ended = regard("translate", odd_model, "--scores", "--alignments", stdin="a 1\n\n")
    text, score, alignment = ended.lines[0].split("\t")
    assert text == found.text.replace("\t", " ").replace("\n", " ")
    assert float(score) == pytest.approx(found.score, abs=1e-4)
    assert alignment == " ".join(f"{source}-{target}" for source, target in found.alignment)
    assert ended.lines[1] == "\t0.0000\t"


def test_n_best_lists_have_the_number_of_their_line(regard: Regard, odd_model: Path, translator: Translator) -> None:
    ended = regard("translate", odd_model, "--n-best", "3", "--beam", "5", stdin="a 1\n\nb 2\n")
    rows = [line.split(" ||| ") for line in ended.lines]
    assert [row[0] for row in rows] == ["1", "1", "1", "2", "3", "3", "3"]
    assert rows[3] == ["2", "", "0.0000"]
    scores = [float(row[2]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True)
    found = translator.translate("a 1", n_best=3, beam=5)
    assert scores == pytest.approx([one.score for one in found.candidates], abs=1e-4)


def test_json_carries_everything(regard: Regard, odd_model: Path, translator: Translator) -> None:
    found = translator.translate("a 1", n_best=2, alignments=True)
    answers = [
        json.loads(line) for line in regard("translate", odd_model, "--json", "--n-best", "2", stdin="a 1\n\n").lines
    ]
    assert answers[0].keys() == {
        *("source", "text", "score", "log_probability", "tokens", "token_scores", "alignment", "others")
    }
    assert answers[0]["source"] == "a 1"
    assert answers[0]["text"] == found.text
    assert answers[0]["score"] == pytest.approx(found.score, abs=1e-5)
    assert answers[0]["log_probability"] == pytest.approx(sum(found.token_scores), abs=1e-5)
    assert answers[0]["tokens"] == list(found.tokens)
    assert answers[0]["alignment"] == [list(point) for point in found.alignment]
    assert answers[0]["others"][0]["text"] == found.candidates[1].text
    assert (answers[1]["source"], answers[1]["text"], answers[1]["tokens"]) == ("", "", [])


def test_options_reach_the_search(regard: Regard, odd_model: Path, translator: Translator) -> None:
    text = "a 1\nb 2\nc 3\n"
    for arguments, changes in (
        (["--beam", "1"], {"beam": 1}),
        (["--beam", "3", "--length-penalty", "2"], {"beam": 3, "length_penalty": 2.0}),
        (["--extra-length", "0"], {"extra_length": 0}),
        (
            ["--sample", "--seed", "7", "--temperature", "2", "--top-k", "9"],
            {"sampling": True, "seed": 7, "temperature": 2.0, "top_k": 9},
        ),
    ):
        found = [one.text for one in translator.translate(text.split("\n")[:-1], **changes)]
        answers = [
            json.loads(line)["text"] for line in regard("translate", odd_model, "--json", *arguments, stdin=text).lines
        ]
        assert answers == found


def test_the_size_of_batches_changes_nothing(regard: Regard, odd_model: Path) -> None:
    text = "".join(f"{'a b ' * (number % 5)}{number}\n" for number in range(20))
    whole = regard("translate", odd_model, stdin=text)
    assert regard("translate", odd_model, "--batch-tokens", "1", stdin=text).out == whole.out


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_not_more_than_a_window_is_read_ahead(translator: Translator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for read in count(1):
            yield f"a {read}"

    found = translator.translate_lines(endless(), window=5, beam=1)
    assert next(found).source == "a 1"
    assert read == 5
    for _ in range(5):
        next(found)
    assert read == 10


# ---- several processes -----------------------------------------------------------------------------------------------

MIXED = "".join(f"{'a b ' * (number % 9)}{number}\n" if number % 5 else "\n" for number in range(60))


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json", "--n-best", "2"), ("--sample",)])
def test_processes_that_share_the_lines_write_what_one_writes(
    regard: Regard, odd_model: Path, tmp_path: Path, form: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.write_text(MIXED)
    arguments = ("translate", odd_model, text, *form, "--window", "7", "--threads", "1")
    alone = regard(*arguments)
    monkeypatch.setattr("regard.sharing._take", lambda crew: 10**9)  # the first leaves all the work to the others
    ended = regard(*arguments, "--processes", "3", "-o", tmp_path / "out")
    assert ended.code == 0
    assert "3 processes of 1 thread share the lines" in ended.err
    assert (tmp_path / "out").read_bytes() == alone.out.encode()
    assert len(alone.lines) >= 60


@pytest.mark.slow
def test_a_line_that_fails_in_another_process_is_named_by_the_first(odd_model: Path) -> None:
    folder = odd_model.parent / "unlucky"
    folder.mkdir(exist_ok=True)
    (folder / "unlucky.py").write_text(
        textwrap.dedent("""
            from regard.cli import windows
            from regard.translator import Translator
            search = Translator._search
            def fail(self, units, options):
                if any("bad" in self.vocabulary.decode(unit.tokens) for unit in units):
                    raise RuntimeError("no luck")
                return search(self, units, options)
            def help_to_translate(*rest):
                Translator._search = fail
                windows_help(*rest)
            windows_help = windows.help_to_translate
        """)
    )
    start = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(folder)!r})
        import unlucky
        from regard import sharing
        from regard.cli import main, windows
        windows.help_to_translate = unlucky.help_to_translate
        sharing._take = lambda crew: 10**9  # the first leaves all the work to the other
        sys.argv = ["regard", "translate", {str(odd_model)!r}, "--processes", "2", "--window", "1", "--beam", "1"]
        main.main()
    """)
    lines = ["bad" if number % 3 == 0 else f"a {number}" for number in range(1, 13)]
    done = subprocess.run(
        [sys.executable, "-c", start], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert [bool(line) for line in done.stdout.split("\n")[:-1]] == [line != "bad" for line in lines]
    for number in (3, 6, 9, 12):
        assert f"line {number} could not be translated: RuntimeError: no luck\n" in done.stderr
    assert "4 lines could not be translated" in done.stderr


@pytest.mark.slow
def test_a_process_that_is_lost_is_named_and_the_others_end(odd_model: Path) -> None:
    folder = odd_model.parent / "lost"
    folder.mkdir(exist_ok=True)
    (folder / "lost_windows.py").write_text(
        textwrap.dedent(f"""
            import os, signal, sys
            def help_to_translate(rank, size, store, *rest):
                store.add("taken", 1)
                os.kill(os.getpid(), signal.SIGKILL)
            if __name__ == "__main__":
                import lost_windows
                from regard.cli import main, windows
                windows.help_to_translate = lost_windows.help_to_translate
                sys.argv = ["regard", "translate", {str(odd_model)!r}, "--processes", "2", "--window", "1"]
                main.main()
        """)
    )
    done = subprocess.run(
        [sys.executable, folder / "lost_windows.py"],
        input="a\n" * 2000,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.endswith("regard: process 2 of 2 was killed by signal 9, as systems do when memory runs out\n")


@pytest.mark.slow
def test_torchrun_shares_a_file_out_and_gives_the_lines_back_in_order(
    regard: Regard, odd_model: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_text(MIXED)
    arguments = ("translate", str(odd_model), str(text), "--scores", "--window", "7", "--threads", "1")
    alone = regard(*arguments)
    start = [REGARD.with_name("torchrun"), "--nproc-per-node=2", "-m", "regard", *arguments]
    done = subprocess.run([*start, "-o", tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == alone.out.encode()
    assert done.stderr.count("2 processes of 1 thread share the lines") == 1
    streamed = subprocess.run(start, capture_output=True, text=True, check=False)
    assert streamed.stdout == alone.out


def test_what_is_asked_for_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.cli import windows
    from regard.cli.forms import Form
    from regard.cli.trial import Plan
    from regard.launch import Launch

    def settled(threads: int | None, processes: int | None, launch: Launch | None = None) -> Plan | None:
        return windows._settle_processes(windows.Order("m", "auto", "auto", threads, {}, Form()), processes, launch)

    monkeypatch.setattr(windows, "cores", lambda: 4)
    assert settled(None, None) is None
    assert settled(3, None) == Plan(1, 3)
    assert settled(None, 1) == Plan(1, None)
    assert settled(None, 2) == Plan(2, 2)
    assert settled(3, 2) == Plan(2, 3)
    assert settled(None, None, Launch(0, 8, 0, 2)) == Plan(8, 2)
    monkeypatch.setattr(windows, "cores", lambda: 1)
    assert settled(None, None) == Plan(1, None)
