"""The loop: when it validates, writes, goes on and ends."""

import json
import math
import shutil
from pathlib import Path

import pytest
import torch
from digits import Words, files_below, recipe, same_weights, weights_of, write_corpus

from regard.errors import MissingExtraError, TrainingError, UserError
from regard.settings import Settings
from regard.text.vocabulary import Vocabulary
from regard.training import log as log_module
from regard.training import loop
from regard.training import step as step_module
from regard.training.average import average_weights
from regard.training.loop import Clock, train
from regard.translator import load


def go(settings: Settings, out: Path, words: Words, **options) -> Path:
    return train(settings, out, display=words, device="cpu", processes=1, threads=1, **options)


def checkpoint_steps(out: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in (out / "checkpoints").iterdir())


def events(out: Path, kind: str) -> list[dict]:
    lines = (out / "log.jsonl").read_text().splitlines()
    return [facts for facts in map(json.loads, lines) if facts["event"] == kind]


def spoil(monkeypatch, bad):
    """Make the gradients of the steps for which `bad` says so infinite."""
    take, learn = step_module.Stepper.take, step_module.Stepper.learn

    def spoiled_learn(self, batches, seeds, consistency):
        loss = learn(self, batches, seeds, consistency)
        self.optimizer.gradient[:] = math.inf
        return loss._replace(objective=loss.objective * math.inf)

    def spoiled(self, step, number, rate, stop=False):
        with monkeypatch.context() as patch:
            if bad(number):
                patch.setattr(step_module.Stepper, "learn", spoiled_learn)
            return take(self, step, number, rate, stop)

    monkeypatch.setattr(step_module.Stepper, "take", spoiled)


# ---- a whole run -----------------------------------------------------------------------------------------------------


def test_a_finished_run_has_a_model_that_translates_and_a_card(finished_run):
    assert {path.name for path in (finished_run / "model").iterdir()} == {
        "weights.safetensors",
        "vocabulary.spm",
        "settings.toml",
        "model.json",
        "README.md",
    }
    facts = json.loads((finished_run / "model" / "model.json").read_text())
    assert (facts["format"], facts["step"], facts["averaged_steps"]) == (1, 12, [4, 8, 12])
    assert facts["skipped_steps"] == 0
    assert facts["weights"] == sum(weight.numel() for weight in weights_of(finished_run / "model").values())
    assert {one["name"] for one in facts["validation"]} >= {"BLEU"}
    card = (finished_run / "model" / "README.md").read_text()
    assert "12 steps" in card
    assert "checkpoints at steps 4, 8, 12" in card
    assert isinstance(load(finished_run, threads=1).translate("1 2 3").text, str)


def test_the_model_is_the_average_of_the_checkpoints(finished_run):
    expected = average_weights([finished_run / "checkpoints" / f"step-{step:08}" for step in (4, 8, 12)])
    found = weights_of(finished_run / "model")
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())


def test_the_log_has_every_step_and_validation_once_with_all_that_is_known(finished_run):
    training = events(finished_run, "training")
    assert [facts["step"] for facts in training] == list(range(1, 13))
    assert set(training[0]) == {
        *("event", "step", "epoch", "target_tokens", "skipped", "objective", "loss", "perplexity", "gradient_norm"),
        *("tokens_per_second", "learning_rate", "memory", "seconds"),
    }
    assert [facts["learning_rate"] for facts in training][:3] == pytest.approx([0.001, 0.002, 0.003])
    assert training[-1]["loss"] < training[0]["loss"]
    tokens = [facts["target_tokens"] for facts in training]
    assert tokens == sorted(tokens)
    assert [facts["step"] for facts in events(finished_run, "validation")] == [4, 8, 12]
    assert set(events(finished_run, "validation")[0]) == {"event", "step", "loss", "perplexity", "bleu"}


def test_the_same_settings_give_the_same_weights_and_another_seed_others(corpus, finished_run, tmp_path, words):
    assert same_weights(go(recipe(corpus), tmp_path / "same", words), finished_run / "model")
    assert not same_weights(go(recipe(corpus, seed=2), tmp_path / "other", words), finished_run / "model")


def test_a_finished_run_started_again_says_so_and_changes_nothing(corpus, finished_run, tmp_path, words):
    out = tmp_path / "again"
    shutil.copytree(finished_run, out)
    before = files_below(out)
    assert go(recipe(corpus), out, words, tensorboard=True) == out / "model"
    assert words.lines == [f"this training is finished: {out / 'model'}"]
    assert files_below(out) == before


def test_a_finished_run_without_its_checkpoints_is_still_finished(corpus, finished_run, tmp_path, words):
    out = tmp_path / "lean"
    shutil.copytree(finished_run, out, ignore=shutil.ignore_patterns("checkpoints"))
    go(recipe(corpus), out, words)
    assert words.lines == [f"this training is finished: {out / 'model'}"]


def test_other_settings_are_refused_with_the_difference(corpus, finished_run, tmp_path, words):
    out = tmp_path / "other"
    shutil.copytree(finished_run, out)
    before = files_below(out)
    with pytest.raises(UserError, match=r"training\.steps: was 12, now 24"):
        go(recipe(corpus, steps=24), out, words)
    assert files_below(out) == before


def test_other_text_is_refused(corpus, tmp_path, words):
    other = tmp_path / "corpus"
    shutil.copytree(corpus, other)
    go(recipe(other, steps=1), tmp_path / "run", words)
    with (other / "train.src").open("a") as source, (other / "train.tgt").open("a") as target:
        print("1 1", file=source)
        print("1 1", file=target)
    with pytest.raises(UserError, match=r"train\.src"):
        go(recipe(other, steps=1), tmp_path / "run", words)


def test_another_vocabulary_is_refused_with_its_name(corpus, finished_run, tmp_path, words):
    vocabulary = tmp_path / "own.spm"
    shutil.copy(finished_run / "vocabulary.spm", vocabulary)
    settings = recipe(corpus, steps=1)
    settings = settings.model_copy(update={"data": settings.data.model_copy(update={"vocabulary": vocabulary})})
    go(settings, tmp_path / "run", words)
    Vocabulary.train(["1 2 3 4 5 6 7 8 9 0 a b"], 300).save(vocabulary)
    with pytest.raises(UserError, match=rf"data\.vocabulary: {vocabulary} has changed"):
        go(settings, tmp_path / "run", words)
    shutil.copy(vocabulary, tmp_path / "run" / "vocabulary.spm")
    shutil.copy(finished_run / "vocabulary.spm", vocabulary)
    with pytest.raises(UserError, match=r"run/vocabulary\.spm: not the vocabulary that .*data/train was made with"):
        go(settings, tmp_path / "run", words)


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.bin", "lines.bin"])
def test_a_flipped_bit_in_the_prepared_data_is_found_and_preparing_again_heals_it(
    name, stopped_run, finished_run, corpus, words
):
    out = stopped_run(4)
    path = out / "data" / "train" / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"data/train: damaged: .*remove .*/data and run the same command again"):
        go(recipe(corpus), out, words)
    shutil.rmtree(out / "data")
    with pytest.raises(UserError, match=r"training\.seed: was 1, now 2"):  # no way around the settings
        go(recipe(corpus, seed=2), out, words)
    assert same_weights(go(recipe(corpus), out, words), finished_run / "model")


def test_a_checkpoint_of_other_data_is_refused_even_if_the_data_was_made_anew(stopped_run, tmp_path, words):
    other = write_corpus(tmp_path / "corpus")
    go(recipe(other, steps=4, average_checkpoints=1), tmp_path / "run", words)
    shutil.rmtree(tmp_path / "run" / "data")
    shutil.rmtree(tmp_path / "run" / "model")
    lines = (other / "train.src").read_text().splitlines(keepends=True)
    for end in ("src", "tgt"):
        (other / f"train.{end}").write_text("".join(lines[::-1]))
    with pytest.raises(UserError, match=r"step-00000004: trained on other data than .*data/train holds"):
        go(recipe(other, steps=4, average_checkpoints=1), tmp_path / "run", words)


def test_no_training_text_is_the_users_mistake(tmp_path, words):
    with pytest.raises(UserError, match=r"data\.train: no training corpus"):
        go(Settings(), tmp_path / "run", words)
    assert not (tmp_path / "run").exists()


def test_relative_paths_work_and_mean_the_same_when_going_on_from_elsewhere(tmp_path, words, monkeypatch):
    write_corpus(tmp_path / "corpus")
    monkeypatch.chdir(tmp_path)
    relative = recipe(Path("corpus"), steps=2)
    relative = relative.model_copy(
        update={"data": relative.data.model_copy(update={"train": tuple(
            one.model_copy(update={"source": Path("corpus/train.src"), "target": Path("corpus/train.tgt")})
            for one in relative.data.train
        )})}
    )  # fmt: skip
    go(relative, Path("run"), words)
    monkeypatch.chdir("/")
    go(recipe(tmp_path / "corpus", steps=2), tmp_path / "run", words)
    assert "this training is finished" in words.lines[-1]


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [4, 8, 12])
def test_a_run_that_ended_after_any_checkpoint_goes_on_to_the_same_weights(
    step, stopped_run, finished_run, corpus, words
):
    out = stopped_run(step)
    go(recipe(corpus), out, words)
    assert f"going on from {out / 'checkpoints' / f'step-{step:08}'}" in words.lines
    assert same_weights(out / "model", finished_run / "model")
    for name in ("step-00000004", "step-00000008", "step-00000012"):
        assert same_weights(out / "checkpoints" / name, finished_run / "checkpoints" / name)
    assert [facts["loss"] for facts in events(out, "training")] == [
        facts["loss"] for facts in events(finished_run, "training")
    ]


@pytest.mark.parametrize("rule", ["last", "best"])
def test_the_average_is_the_same_also_if_checkpoints_were_removed_before_the_end(rule, stopped_run, corpus, words):
    settings = {"checkpoint_steps": 2, "average": rule, "average_checkpoints": 2, "choose_by": "bleu"}
    whole = go(recipe(corpus, **settings), stopped_run(2, "other", **settings).with_name("whole"), words)
    out = stopped_run(8, **settings)
    assert same_weights(go(recipe(corpus, **settings), out, words), whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(stopped_run, finished_run, corpus, words):
    out = stopped_run(8)
    broken = out / "checkpoints" / "step-00000008" / "optimizer.safetensors"
    broken.write_bytes(broken.read_bytes()[:-7])
    go(recipe(corpus), out, words)
    assert f"passed over a damaged checkpoint: {broken}: its contents have changed" in str(words)
    assert f"going on from {out / 'checkpoints' / 'step-00000004'}" in words.lines
    assert same_weights(out / "model", finished_run / "model")
    assert checkpoint_steps(out) == [4, 8, 12]


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "progress.json", "checksums.json"])
@pytest.mark.parametrize("damage", ["missing", "cut off", "flipped bit"])
def test_whatever_file_is_damaged_however_it_is_named_and_the_run_ends_the_same(
    name, damage, stopped_run, finished_run, corpus, words
):
    out = stopped_run(8)
    path = out / "checkpoints" / "step-00000008" / name
    raw = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "cut off":
        path.write_bytes(raw[: len(raw) // 2])
    else:
        raw[len(raw) // 2] ^= 4
        path.write_bytes(raw)
    go(recipe(corpus), out, words)
    told = next(line for line in words.lines if line.startswith("passed over a damaged checkpoint: "))
    # A flipped bit in a checksum shows in the file that it is for.
    assert str(path.parent) in told
    assert name in told or (name, damage) == ("checksums.json", "flipped bit")
    assert f"going on from {out / 'checkpoints' / 'step-00000004'}" in words.lines
    assert same_weights(out / "model", finished_run / "model")


def test_a_checkpoint_missing_from_the_average_is_named(corpus, finished_run, tmp_path, words):
    out = tmp_path / "run"
    shutil.copytree(finished_run, out, ignore=shutil.ignore_patterns("model"))
    (out / "checkpoints" / "step-00000008" / "weights.safetensors").write_bytes(b"")
    go(recipe(corpus), out, words)
    assert f"missing from the average, because damaged or gone: {out / 'checkpoints' / 'step-00000008'}" in words.lines
    assert json.loads((out / "model" / "model.json").read_text())["averaged_steps"] == [4, 12]


def test_with_all_checkpoints_damaged_the_run_begins_anew(stopped_run, finished_run, corpus, words):
    out = stopped_run(8)
    for folder in (out / "checkpoints").iterdir():
        (folder / "progress.json").unlink()
    go(recipe(corpus), out, words)
    assert str(words).count("passed over a damaged checkpoint") == 2
    assert same_weights(out / "model", finished_run / "model")


def test_what_a_kill_left_half_written_or_half_removed_is_cleared_away(stopped_run, finished_run, corpus, words):
    out = stopped_run(8)
    for name in (".step-00000009.writing", ".step-00000003.removing"):
        shutil.copytree(out / "checkpoints" / "step-00000008", out / "checkpoints" / name)
    go(recipe(corpus), out, words)
    assert checkpoint_steps(out) == [4, 8, 12]
    assert same_weights(out / "model", finished_run / "model")


def test_a_checkpoint_that_a_kill_kept_from_being_removed_is_removed_when_the_run_goes_on(
    stopped_run, finished_run, corpus, words
):
    out = stopped_run(12, average_checkpoints=2)
    assert checkpoint_steps(out) == [8, 12]
    shutil.copytree(finished_run / "checkpoints" / "step-00000004", out / "checkpoints" / "step-00000004")
    go(recipe(corpus, average_checkpoints=2), out, words)
    assert checkpoint_steps(out) == [8, 12]


def test_a_log_past_the_checkpoint_is_written_again_and_has_no_step_twice(stopped_run, corpus, words):
    out = stopped_run(8)
    with (out / "log.jsonl").open("a") as log:  # as a run does that is killed somewhat later
        print(json.dumps({"event": "training", "step": 9, "loss": 1.0}), file=log)
        log.write('{"event": "training", "st')
    go(recipe(corpus), out, words)
    assert [facts["step"] for facts in events(out, "training")] == list(range(1, 13))


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_only_the_newest_and_those_to_be_averaged_are_kept(corpus, tmp_path, words):
    go(recipe(corpus, checkpoint_steps=2, average_checkpoints=2), tmp_path, words)
    assert checkpoint_steps(tmp_path) == [10, 12]


def test_the_best_are_kept_besides_the_newest(corpus, tmp_path, words, monkeypatch):
    losses = iter([5.0, 3.0, 1.0, 2.0, 4.0, 6.0])
    monkeypatch.setattr("regard.training.validation.validation_loss", lambda *_: next(losses))
    go(recipe(corpus, checkpoint_steps=2, average_checkpoints=2, average="best"), tmp_path, words)
    assert checkpoint_steps(tmp_path) == [6, 8, 12]
    assert json.loads((tmp_path / "model" / "model.json").read_text())["averaged_steps"] == [6, 8]


def test_the_last_step_is_validated_and_kept_wherever_it_falls(corpus, tmp_path, words):
    go(recipe(corpus, steps=5), tmp_path, words)
    assert checkpoint_steps(tmp_path) == [4, 5]


def test_checkpoints_by_the_clock_are_to_go_on_from_and_never_averaged(corpus, tmp_path, words, stopped_run):
    settings = {"checkpoint_minutes": 1e-9, "steps": 6}  # after every step
    go(recipe(corpus, **settings), tmp_path / "run", words)
    assert checkpoint_steps(tmp_path / "run") == [4, 6]
    assert json.loads((tmp_path / "run" / "model" / "model.json").read_text())["averaged_steps"] == [4, 6]
    out = stopped_run(5, **settings)
    assert checkpoint_steps(out) == [4, 5]
    assert same_weights(go(recipe(corpus, **settings), out, words), tmp_path / "run" / "model")


def test_the_clock_is_off_at_zero_minutes_and_begins_anew_after_a_checkpoint(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(loop.time, "monotonic", lambda: now[0])
    clock, never = Clock(10), Clock(0)
    now[0] = 599
    assert not clock.checkpoint_is_due()
    assert clock.lap() == 599
    now[0] = 600
    assert clock.checkpoint_is_due()
    assert not never.checkpoint_is_due()
    clock.restart()
    assert not clock.checkpoint_is_due()
    assert clock.lap() == 0


def test_a_full_disk_ends_the_run_with_the_checkpoints_before_intact(
    corpus, tmp_path, words, monkeypatch, finished_run
):
    from regard.training import checkpoint

    save = checkpoint.save_file

    def fill(tensors, path):
        if "step-00000008" in str(path):
            raise OSError(28, "No space left on device")
        save(tensors, path)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", fill)
        with pytest.raises(TrainingError, match=r"step-00000008: can't be written: .*No space left on device"):
            go(recipe(corpus), tmp_path, words)
    assert checkpoint_steps(tmp_path) == [4]
    assert same_weights(go(recipe(corpus), tmp_path, words), finished_run / "model")


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_training_stops_early_when_validation_has_not_improved_for_so_long(corpus, tmp_path, words, monkeypatch):
    losses = iter([5.0, 3.0, 4.0, 3.5, 2.0])
    monkeypatch.setattr("regard.training.validation.validation_loss", lambda *_: next(losses))
    settings = recipe(corpus, steps=50, checkpoint_steps=2, patience=2, average="best", average_checkpoints=1)
    go(settings, tmp_path, words)
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (facts["step"], facts["averaged_steps"]) == (8, [4])


def test_a_run_that_stopped_early_stays_stopped(corpus, tmp_path, words, monkeypatch, stopped_run):
    monkeypatch.setattr("regard.training.validation.validation_loss", lambda *_: 3.0)
    settings = {"steps": 50, "checkpoint_steps": 2, "patience": 1}
    out = stopped_run(4, **settings)
    go(recipe(corpus, **settings), out, words)
    assert json.loads((out / "model" / "model.json").read_text())["step"] == 4


def test_without_validation_text_training_goes_to_its_end_and_the_card_says_so(corpus, tmp_path, words):
    go(recipe(corpus, valid=False, steps=5, average="best", patience=1), tmp_path, words)
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (facts["averaged_steps"], facts["validation"]) == ([4, 5], [])
    assert "nothing is known about its quality" in (tmp_path / "model" / "README.md").read_text()
    assert events(tmp_path, "validation") == []


# ---- steps that go wrong ---------------------------------------------------------------------------------------------


def test_a_step_without_a_finite_gradient_is_skipped_counted_and_named(corpus, tmp_path, words, monkeypatch):
    spoil(monkeypatch, lambda number: number in (3, 5))
    go(recipe(corpus, steps=6), tmp_path, words)
    told = [line for line in words.lines if "not finite" in line]
    assert len(told) == 2
    assert told[0].startswith("step 3: loss not finite, weights left as they are (")
    assert "train.src lines " in told[0]
    assert told[0].endswith(" more, all in the log)")
    skipped = events(tmp_path, "skipped")
    assert [facts["step"] for facts in skipped] == [3, 5]
    assert set(skipped[0]) == {"event", "step", "loss", "gradient_norm", "lines"}
    assert skipped[0]["loss"] is None
    lines = [line for found in skipped[0]["lines"].values() for line in found]
    assert len(lines) == len(set(lines)) > 8
    assert 1 <= min(lines) <= max(lines) <= 300
    assert json.loads((tmp_path / "model" / "model.json").read_text())["skipped_steps"] == 2
    assert [facts["skipped"] for facts in events(tmp_path, "training")] == [0, 0, 1, 1, 2, 2]
    assert [facts["loss"] is None for facts in events(tmp_path, "training")] == [False, False, True, False, True, False]


def test_twenty_such_steps_in_a_row_end_the_run_and_name_the_last_good_checkpoint(corpus, tmp_path, words, monkeypatch):
    spoil(monkeypatch, lambda number: number > 10)
    with pytest.raises(TrainingError, match=r"20 steps in a row.*Last good checkpoint: .*step-00000028"):
        go(recipe(corpus, steps=100), tmp_path, words)
    kept = tmp_path / "checkpoints"
    assert same_weights(kept / "step-00000012", kept / "step-00000028")  # they are all good, and the same


def test_without_any_checkpoint_that_is_said(corpus, tmp_path, words, monkeypatch):
    spoil(monkeypatch, lambda number: True)
    with pytest.raises(TrainingError, match="none was written yet"):
        go(recipe(corpus, steps=100, checkpoint_steps=100), tmp_path, words)


def test_weights_that_are_not_finite_are_never_written(corpus, tmp_path, words, monkeypatch):
    take = step_module.Stepper.take

    def overflow(self, step, number, rate, stop=False):
        report = take(self, step, number, rate, stop)
        if number == 8:
            next(self.model.parameters()).data[0, 0] = math.inf
        return report

    monkeypatch.setattr(step_module.Stepper, "take", overflow)
    with pytest.raises(TrainingError, match=r"not finite after step 8; .*Last good checkpoint: .*step-00000004"):
        go(recipe(corpus, valid=False), tmp_path, words)
    assert checkpoint_steps(tmp_path) == [4]


def test_nineteen_in_a_row_do_not_end_the_run(corpus, tmp_path, words, monkeypatch):
    spoil(monkeypatch, lambda number: number % 20 != 0)
    go(recipe(corpus, steps=40, checkpoint_steps=40), tmp_path, words)
    assert json.loads((tmp_path / "model" / "model.json").read_text())["skipped_steps"] == 38


def test_the_largest_batch_is_tried_before_the_first_step_and_only_then(corpus, tmp_path, words, monkeypatch):
    happened = []
    take, attempt = step_module.Stepper.take, loop.try_largest_batch
    monkeypatch.setattr(
        step_module.Stepper, "take", lambda self, *rest: (happened.append("step"), take(self, *rest))[1]
    )
    monkeypatch.setattr(loop, "try_largest_batch", lambda stepper: (happened.append("try"), attempt(stepper))[1])
    go(recipe(corpus, steps=3), tmp_path, words)
    assert happened == ["try", "step", "step", "step"]


def test_too_little_memory_for_the_largest_batch_ends_the_run_before_it_begins(corpus, tmp_path, words, monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(step_module.Stepper, "learn", fail)
    with pytest.raises(UserError, match="not even a piece of one pair"):
        go(recipe(corpus), tmp_path, words)
    assert events(tmp_path, "training") == []


def test_memory_that_runs_out_later_is_told_with_the_last_good_checkpoint(corpus, tmp_path, words, monkeypatch):
    take = step_module.Stepper.take

    def fail(self, step, number, rate, stop=False):
        if number == 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return take(self, step, number, rate, stop)

    monkeypatch.setattr(step_module.Stepper, "take", fail)
    with pytest.raises(TrainingError, match=r"memory ran out in step 6: .*Last good checkpoint: .*step-00000004"):
        go(recipe(corpus), tmp_path, words)


# ---- TensorBoard -----------------------------------------------------------------------------------------------------


def test_tensorboard_files_are_written_if_asked_for_and_not_otherwise(corpus, tmp_path, words):
    pytest.importorskip("tensorboard")
    go(recipe(corpus, steps=2), tmp_path / "with", words, tensorboard=True)
    go(recipe(corpus, steps=2), tmp_path / "without", words)
    assert len(list((tmp_path / "with" / "tensorboard").glob("events.*"))) == 1
    assert not (tmp_path / "without" / "tensorboard").exists()


def test_without_tensorboards_package_the_run_does_not_even_begin(corpus, tmp_path, words, monkeypatch):
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[tensorboard\]'"):
        go(recipe(corpus), tmp_path / "run", words, tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_processes_without_a_piece_of_work_are_told(corpus, words, tmp_path):
    train(
        recipe(corpus, steps=1, batch_tokens=40, micro_batch_tokens=40), tmp_path, display=words, processes=2, threads=1
    )
    assert "a step is cut into 1 pieces for 2 processes: some have nothing to do" in str(words)
    assert "--set training.micro_batch_tokens=20" in str(words)
