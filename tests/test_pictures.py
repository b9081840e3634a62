"""Pictures are valid files of a sensible size, show every token there is, and are the same twice."""

import math
import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.attention_maps import AttentionMaps, draw, draw_curve
from regard.pictures import _colours, _columns_of, _five_steps, _labels, _merge, _words

ODD_TOKENS = [
    "▁日本",
    "🙂",
    "▁$x^2$",
    "$",
    "<0xE2>",
    "\x01",
    "\u202e",
    "▁",
    "",
    "&<\"'>",
    "٣",
    "é",
    "\\frac{",
    "W" * 40,
]


def random_maps(source: list[str], target: list[str], layers: int, heads: int) -> AttentionMaps:
    rng = np.random.default_rng(0)
    rows, columns = len(target) + 1, len(source) + 1
    lower = np.tril(rng.uniform(0.01, 1, (layers, heads, rows, rows)))
    return AttentionMaps(
        source_tokens=(*source, "</s>"),
        target_tokens=("<s>", *target),
        predicted_tokens=(*target, "</s>"),
        encoder=rng.dirichlet(np.ones(columns), (layers, heads, columns)),
        decoder=lower / lower.sum(-1, keepdims=True),
        cross=rng.dirichlet(np.ones(columns), (layers, heads, rows)),
    )


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def svg_texts(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_layer_an_overview_of_each_kind_and_the_alignment_are_drawn(tmp_path):
    files = draw(random_maps(["▁a", "▁b"], ["▁c", "d", "▁e"], layers=2, heads=3), tmp_path / "new" / "folder")
    stems = [
        f"{kind}-{what}" for kind in ("encoder", "decoder", "cross") for what in ("overview", "layer-1", "layer-2")
    ]
    assert [file.name for file in files] == [
        f"{stem}.{ending}" for stem in [*stems, "alignment"] for ending in ("png", "svg")
    ]
    for file in files:
        if file.suffix == ".png":
            width, height = png_size(file)
            assert 300 < width < 2000
            assert 150 < height < 2000
        else:
            assert ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_the_tokens_and_heads_are_written_into_the_picture(tmp_path):
    draw(random_maps(["▁ein", "▁Wort"], ["▁a", "▁word"], layers=1, heads=2), tmp_path, ["svg"])
    texts = svg_texts(tmp_path / "cross-layer-1.svg")
    for text in ("·ein", "·Wort", "·a", "·word", "</s>", "head 1", "head 2", "Cross attention, layer 1 of 1"):
        assert text in texts
    assert "<s>" not in texts  # cross attention names the token that is written, not the one before it
    words = svg_texts(tmp_path / "alignment.svg")
    assert {"ein", "Wort", "a", "word"} <= set(words)


def test_a_long_sentence_gives_a_picture_large_enough_to_read(tmp_path):
    tokens = [f"▁token{i}" for i in range(59)]
    draw(random_maps(tokens, tokens, layers=1, heads=4), tmp_path, ["png"])
    width, height = png_size(tmp_path / "encoder-layer-1.png")
    # At least 12 pixels for each of the 60 tokens of the two panels side by side, and no poster.
    assert 2 * 60 * 12 < width < 4000
    assert 2 * 60 * 12 < height < 4000


def test_tokens_that_no_font_or_formula_can_draw_are_drawn_anyway(tmp_path):
    # Warnings are errors in the tests: a missing glyph would fail here.
    files = draw(random_maps(ODD_TOKENS, ODD_TOKENS, layers=1, heads=1), tmp_path)
    assert "▁" not in "".join(svg_texts(tmp_path / "cross-layer-1.svg"))
    assert all(file.stat().st_size > 1000 for file in files)


def test_an_empty_translation_is_drawn(tmp_path):
    files = draw(random_maps(["▁a"], [], layers=1, heads=1), tmp_path, ["png"])
    assert len(files) == 7


def test_the_same_weights_give_the_same_bytes(tmp_path):
    maps = random_maps(["▁a", "▁b"], ["▁c"], layers=1, heads=2)
    first, second = draw(maps, tmp_path / "first"), draw(maps, tmp_path / "second")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_half_precision_weights_are_drawn(tmp_path):
    maps = random_maps(["▁a"], ["▁b"], layers=1, heads=1)
    half = AttentionMaps(
        maps.source_tokens,
        maps.target_tokens,
        maps.predicted_tokens,
        maps.encoder.astype(np.float16),
        maps.decoder.astype(np.float16),
        maps.cross.astype(np.float16),
    )
    assert len(draw(half, tmp_path, ["png"])) == 7


# ---- parts -----------------------------------------------------------------------------------------------------------


def test_labels_keep_what_can_be_drawn_and_escape_the_rest():
    assert _labels(["▁Straße", "é", "a\x01b"]) == ["·Straße", "é", "a\\u0001b"]
    assert _labels(["x" * 30]) == ["x" * 15 + "…"]


def test_words_are_joined_from_tokens_and_bytes():
    tokens = ["▁Hund", "e", "▁", "<0xE2>", "<0x82>", "<0xAC>", "5", "</s>"]
    assert _words(tokens, [0, 0, 1, 1, 1, 1, 1, 2]) == ["Hunde", "€5", "</s>"]


def test_merged_rows_still_sum_to_one():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), 4)
    merged = _merge(weights, [0, 0, 1, 2], [0, 1, 1, 1, 2])
    assert merged.shape == (3, 3)
    assert merged.sum(1) == pytest.approx(np.ones(3))
    assert merged[1] == pytest.approx([weights[2, 0], weights[2, 1:4].sum(), weights[2, 4]])


@pytest.mark.parametrize(
    ("heads", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (6, 3), (7, 3), (8, 4), (12, 4), (16, 4)]
)
def test_heads_stand_in_a_rectangle(heads, columns):
    assert _columns_of(heads) == columns


def test_colours_go_from_white_to_dark_without_turning_back():
    shades = _colours()(np.linspace(0, 1, 256))[:, :3] @ [0.2126, 0.7152, 0.0722]  # brightness as eyes weigh it
    assert shades[0] == 1
    assert shades[-1] < 0.05
    assert np.all(np.diff(shades) < 1e-3)


# ---- the curve of a training -----------------------------------------------------------------------------------------


def test_a_training_is_drawn_with_both_losses_and_bleu(tmp_path):
    path = draw_curve([10, 20, 30], [5.0, 3.0, 2.0], [(10, 4.0, 12.5), (30, 2.2, 31.0)], tmp_path / "new" / "curve.svg")
    assert path == tmp_path / "new" / "curve.svg"
    texts = svg_texts(path)
    assert {"●  training loss", "●  validation loss", "●  validation BLEU (right)", "step"} <= set(texts)


@pytest.mark.parametrize(
    ("steps", "losses", "validation"),
    [([], [], []), ([1], [2.0], []), ([1, 2], [2.0, math.nan], [(2, math.inf, None)])],
)
def test_a_training_that_has_hardly_begun_or_went_wrong_is_drawn(tmp_path, steps, losses, validation):
    path = draw_curve(steps, losses, validation, tmp_path / "curve.png")
    width, height = png_size(path)
    assert (width, height) == (1125, 630)


def test_a_curve_without_bleu_does_not_name_it(tmp_path):
    texts = svg_texts(draw_curve([1, 2], [2.0, 1.0], [(2, 1.5, None)], tmp_path / "curve.svg"))
    assert not any("BLEU" in text for text in texts)


@pytest.mark.parametrize(
    ("largest", "unit", "top"), [(6.9, 0.5, 7.5), (0.0, 0.5, 2.5), (96.0, 5, 100), (41.0, 5, 50), (3.0, 5, 25)]
)
def test_an_axis_has_five_even_steps_that_hold_the_largest_value(largest, unit, top):
    assert _five_steps([1e-9, largest, math.nan], unit).tolist() == np.linspace(0, top, 6).tolist()
