"""`regard quantize`: a quarter of the size, used like any other model."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard as package
from regard.machine import int8_works
from regard.model_folder import named_weights, read_model

from .running import Regard


@pytest.fixture
def rounded(regard: Regard, run: Path, tmp_path: Path) -> Path:
    ended = regard("quantize", run, "--out", tmp_path / "int8")
    assert ended.code == 0, ended.err
    assert "MB of weights instead of" in ended.out
    return tmp_path / "int8"


def test_weights_are_eight_bits_and_a_scale_a_row(run: Path, rounded: Path) -> None:
    before, after = (load_file(path / "weights.safetensors") for path in (run / "model", rounded))
    for name, weight in before.items():
        if weight.dim() == 2:
            assert after[name].dtype == torch.int8
            assert after[f"{name}.scale"].shape == weight.shape[:1]
        else:
            assert torch.equal(after[name], weight)
    assert "eight bits" in (rounded / "README.md").read_text(encoding="utf-8")


def test_the_model_that_is_read_is_within_half_a_step_of_the_one_it_was_made_from(run: Path, rounded: Path) -> None:
    exact, found = (named_weights(read_model(path).model) for path in (run, rounded))
    for name, weight in exact.items():
        if weight.dim() == 2:
            steps = weight.abs().amax(dim=1, keepdim=True) / 127
            assert ((found[name] - weight).abs() <= 0.501 * steps).all()


def test_it_translates_in_eight_bits_and_nearly_as_before(regard: Regard, run: Path, rounded: Path) -> None:
    if not int8_works():
        pytest.skip("fbgemm's products do not work on this machine")
    assert package.load(rounded).machine.precision == "int8"
    assert package.load(rounded, precision="float32").machine.precision == "float32"
    sentence = "1 2 3"
    scores = [package.load(path).translate(sentence).score for path in (run, rounded)]
    assert scores[0] == pytest.approx(scores[1], abs=0.2)
    assert regard("translate", rounded, stdin=f"{sentence}\n\n{sentence}\n").out.count("\n") == 3


def test_where_eight_bits_do_not_work_it_says_so_and_goes_on(
    regard: Regard, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.machine.int8_works", lambda: False)
    ended = regard("translate", run, "--precision", "int8", stdin="1 2\n")
    assert ended.code == 0
    assert "int8 was asked for, but a probe of it failed here" in ended.err
    assert ended.out.count("\n") == 1


@pytest.mark.parametrize("damage", ["scale", "type", "missing"])
def test_a_rounded_model_that_is_damaged_is_refused(regard: Regard, rounded: Path, damage: str) -> None:
    path = rounded / "weights.safetensors"
    weights = load_file(path)
    name = next(name for name, weight in weights.items() if weight.dtype == torch.int8)
    if damage == "scale":
        weights[f"{name}.scale"][0] = float("nan")
    elif damage == "type":
        weights[name] = weights[name].float()
    else:
        del weights[f"{name}.scale"]
    save_file(weights, path)
    ended = regard("translate", rounded, stdin="1 2\n")
    assert ended.code == 2
    assert name in ended.err
    assert "Traceback" not in ended.err


def test_mistakes_are_told(regard: Regard, run: Path, rounded: Path, tmp_path: Path) -> None:
    again = regard("quantize", rounded, "--out", tmp_path / "twice")
    assert (again.code, again.out) == (2, "")
    assert "already" in again.err
    there = regard("quantize", run, "--out", rounded)
    assert there.code == 2
    assert "choose another --out" in there.err
    corpus = [tmp_path / "new.dig", tmp_path / "new.let"]
    for file in corpus:
        file.write_text("a\nb\n", encoding="utf-8")
    further = regard("finetune", rounded, "--train", *corpus, "--out", tmp_path / "further")
    assert further.code == 2
    assert "rounded to eight bits" in further.err
