"""The page as a whole: complete, inert, and shown by a real browser."""

import re
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from test_markup import Reader

from regard.attention_maps import AttentionMaps
from regard.evaluate import score_all
from regard.report.content import Content, Curves, choose_samples, choose_to_look_at, departures
from regard.report.page import write_page
from regard.settings import resolve

HOSTILE = (
    "</span></style><script>document.title='taken'</script><img src='http://localhost:9/x' onerror=alert(1)> ]]> \u202e"
)


def make_content(text: str = "a sentence", **changes: object) -> Content:
    sources = [f"{text} {number}" for number in range(40)]
    references = [f"{text} {number} {'x ' * (number % 5)}" for number in range(40)]
    translations = [f"{text} {number}" for number in range(40)]
    samples, worst = choose_samples(sources, references, translations)
    rows = np.full((2, 2, 3, 3), 1 / 3)
    tokens = (f"▁{text}", "b", "</s>")
    values: dict[str, object] = {
        "settings": resolve(
            {
                "preset": "tiny",
                "data": {
                    "source_language": text,
                    "target_language": "de",
                    "train": [{"source": f"/x/{text.replace('/', '')}", "target": "/x/b"}],
                },
            }
        ),
        "version": "1",
        "weights": 12_345_678,
        "step": 1000,
        "seconds": 61.0,
        "target_tokens": 5,
        "skipped": 0,
        "averaged": [900, 1000],
        "data": [f"training: kept 5 of {text}"],
        "scores": score_all(translations, references, bootstrap=10),
        "samples": samples,
        "worst": worst,
        "sentences": 40,
        "curves": Curves([(1.0, 5.0), (2.0, 4.0)], [(1.0, 99.0)], [(2.0, 3.0)], [(2.0, 20.0)], [(2.0, 11.5)]),
        "attention": [AttentionMaps(tokens, tokens, tokens, rows, rows, rows)],
    }
    return Content(**{**values, **changes})  # type: ignore[arg-type]


def test_everything_that_is_promised_is_there() -> None:
    page = write_page(make_content())
    read = Reader(page)
    for name in ("scores", "curves", "translations", "worst", "attention", "data", "settings"):
        assert ("section", [("id", name)]) in read.elements
        assert ("a", [("href", f"#{name}")]) in read.elements
    assert page.count('class="card"') == 20 + 10 + 1
    assert page.count('class="chart"') == 3
    assert "version:" in page  # sacreBLEU's signature
    assert "model.d_model" in page


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = write_page(make_content(HOSTILE))
    read = Reader(page)
    names = {name for name, _ in read.elements}
    assert not names & {"script", "img", "link", "iframe", "object", "form", "base"}
    attributes = {key for _, pairs in read.elements for key, _ in pairs}
    assert not attributes & {"src", "srcset", "onerror", "onload", "action"}
    assert {value for _, pairs in read.elements for key, value in pairs if key == "href"} <= {
        f"#{name}" for name in ("scores", "curves", "translations", "worst", "attention", "data", "settings")
    }
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in dict(
        next(
            pairs
            for name, pairs in read.elements
            if name == "meta" and ("http-equiv", "Content-Security-Policy") in pairs
        )
    ).get("content", "")


def test_without_validation_text_it_says_so_and_shows_the_rest() -> None:
    page = write_page(make_content(scores=[], samples=[], worst=[], sentences=0, attention=[], curves=Curves()))
    assert "so nothing is known about the model" in page
    assert not re.search(r'id="(translations|worst|attention|curves)"', page)
    assert "kept 5 of" in page


def test_samples_are_spread_and_the_worst_come_first() -> None:
    samples, worst = choose_samples([str(n) for n in range(100)], ["abc def"] * 100, ["abc def"] * 99 + ["xyz"])
    assert [int(one.source) for one in samples] == list(range(0, 100, 5))
    assert [one.source for one in worst] == ["99"]  # the others are just what the reference says
    _, worst = choose_samples([str(n) for n in range(100)], ["abc def"] * 100, ["abc d"] * 99 + ["xyz"])
    assert (worst[0].source, len(worst)) == ("99", 10)
    assert choose_samples([], [], []) == ([], [])
    few, _ = choose_samples(["a"], ["b"], ["c"])
    assert len(few) == 1


def test_sentences_to_look_at_are_of_a_length_that_can_be_read() -> None:
    samples, _ = choose_samples(["word " * n for n in range(1, 30)], ["x"] * 29, ["x"] * 29)
    assert all(7 <= len(one.source.split()) <= 13 for one in choose_to_look_at(samples))
    assert choose_to_look_at([]) == []


def test_departures_are_what_differs_from_the_papers_base_model() -> None:
    settings = resolve({"model": {"d_model": 256}, "data": {"vocabulary_size": 500}})
    assert departures(settings) == [("model.d_model", 256, 512)]


# ---- in a browser ----------------------------------------------------------------------------------------------------

BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := which(name))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here")


def browse(*arguments: str) -> str:
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@in_a_browser
def test_a_browser_shows_hostile_text_as_text(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(write_page(make_content(HOSTILE)), encoding="utf-8")
    shown = browse("--dump-dom", page.as_uri())
    title = re.search(r"<title>(.*?)</title>", shown, re.DOTALL)
    assert title
    assert title[1] != "taken"
    assert "<script" not in shown
    assert "<img" not in shown


@in_a_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_draws_it_within_the_screens_width(tmp_path: Path, width: int) -> None:
    """The page is put into a frame that measures it: nothing may be wider than the screen."""
    (tmp_path / "report.html").write_text(write_page(make_content("ein Satz " * 30)), encoding="utf-8")
    (tmp_path / "frame.html").write_text(
        f'<iframe id="f" src="report.html" style="width:{width}px;height:900px;border:0"></iframe><p id="p"></p>'
        "<script>f.onload = () => { const d = f.contentDocument.documentElement;"
        ' p.textContent = "widths " + d.scrollWidth + " " + d.clientWidth; }</script>',
        encoding="utf-8",
    )
    shown = browse(
        "--allow-file-access-from-files",
        f"--window-size={width + 40},1000",
        "--virtual-time-budget=3000",
        "--dump-dom",
        (tmp_path / "frame.html").as_uri(),
    )
    found = re.search(r"widths (\d+) (\d+)", shown)
    assert found
    assert int(found[1]) <= int(found[2])
