"""`regard report`: a finished run's page, written again."""

from pathlib import Path

from .running import Regard


def test_it_writes_the_same_page_again(regard: Regard, run: Path) -> None:
    page = run / "report.html"
    before = page.read_text(encoding="utf-8")
    page.unlink()
    ended = regard("report", run, "--threads", "1", "--device", "cpu")
    assert (ended.code, ended.lines) == (0, [str(page)])
    assert page.read_text(encoding="utf-8") == before


def test_what_is_no_finished_run_is_named(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, odd_model, tmp_path / "nowhere"):
        ended = regard("report", folder)
        assert ended.code == 2
        assert f"{folder}: no finished run here" in ended.err
