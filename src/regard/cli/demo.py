"""`regard demo`: the whole way on the embedded corpus, in a few minutes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, Overrides, Processes, Progress, ProgressMode, Threads

if TYPE_CHECKING:
    from regard.progress import Display
    from regard.settings import Settings
    from regard.text.grammar import Splits
    from regard.translator import Translator

EXAMPLES = """
regard demo
regard demo --out RUN --set training.steps=500
regard demo --write-corpus corpus
"""
_DEFAULT_RUN = Path("demo-run")
_LOOK_AT = "If Maria and her sister lose the key, they will travel to Spain next month."


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="RUN", help="The run's folder.", show_default="demo-run")
    ] = None,
    write_corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write train, valid, test and heldout, each .en and .de, here; without --out, do only that.",
        ),
    ] = None,
    overrides: Overrides = None,
    device: Device = "auto",
    processes: Processes = None,
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Train and measure a translator on the embedded corpus.

    The corpus is English–German. It is written by a grammar inside regard, so that nothing has to be fetched. Takes a
    few minutes on two cores; ends with scores, pictures of the attention and of the loss, and commands to go on with.
    """
    from regard.progress import open_display
    from regard.text.grammar import make_splits

    display = open_display(progress.value)
    splits = make_splits()
    if write_corpus is not None:
        _write_corpus(splits, write_corpus)
        display.say(f"wrote train, valid, test and heldout, each .en and .de, to {write_corpus}")
        if out is None:
            return
    run = out or _DEFAULT_RUN
    from regard.training.loop import train
    from regard.translator import load

    _write_corpus(splits, run / "corpus")
    settings = _settings(run / "corpus", overrides or [])
    model = train(settings, run, display=display, device=device, processes=processes, threads=threads)
    translator = load(model, device=device, threads=threads)
    _show_scores(translator, splits, display)
    _draw(translator, run)
    _say_what_next(run)


def _settings(corpus: Path, overrides: list[str]) -> "Settings":
    from regard.settings import resolve

    data = {
        "source_language": "en",
        "target_language": "de",
        "train": [{"source": corpus / "train.en", "target": corpus / "train.de"}],
        "valid": [{"source": corpus / "valid.en", "target": corpus / "valid.de"}],
    }
    return resolve({"preset": "demo", "data": data}, overrides, origin="demo")


def _write_corpus(splits: "Splits", folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test", "heldout"):
        pairs = getattr(splits, name)
        for ending, texts in (("en", [pair.source for pair in pairs]), ("de", [pair.target for pair in pairs])):
            text = "".join(f"{line}\n" for line in texts)
            path = folder / f"{name}.{ending}"
            # Written only if it differs: a run that goes on must find its corpus unchanged.
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")


def _show_scores(translator: "Translator", splits: "Splits", display: "Display") -> None:
    """Translate the two test sets and print a table of scores and some translations."""
    from regard.cli.lines import Failures, complaints, translate_all
    from regard.cli.table import print_table
    from regard.evaluate import exact_matches, score_all

    rows = []
    for name, pairs, meaning in (
        ("test", splits.test, "sentences like those in training, but none of them"),
        ("heldout", splits.heldout, "combinations of words that training never had"),
    ):
        sources = [pair.source for pair in pairs]
        found = list(translate_all(translator, sources, display, Failures(complaints(display)), f"translating {name}"))
        references = [pair.target for pair in pairs]
        scores = {
            one.name: f"{one.value:.1f}" for one in score_all(found, references, target_language="de", bootstrap=0)
        }
        rows.append([name, scores["BLEU"], scores["chrF2"], f"{exact_matches(found, references):.1%}", meaning])
    print()
    print_table(["set", "BLEU", "chrF2", "exact", "what it is"], rows)


def _draw(translator: "Translator", run: Path) -> None:
    """Draw the attention for one sentence, and the loss curve."""
    from regard.attention_maps import draw, draw_curve
    from regard.training.log import read_log

    draw(translator.look(_LOOK_AT), run / "attention", ("png",))
    events = [facts for _, facts in read_log(run / "log.jsonl")]
    training = [(row["step"], row["loss"]) for row in events if row["event"] == "training"]
    validation = [(row["step"], row["loss"], row["bleu"]) for row in events if row["event"] == "validation"]
    draw_curve([step for step, _ in training], [loss for _, loss in training], validation, run / "curve.png")


def _say_what_next(run: Path) -> None:
    print(
        f"""
pictures:  {run}/attention/alignment.png and the others beside it · {run}/curve.png

next:
  echo "{_LOOK_AT}" | regard translate {run}
  regard inspect {run} "{_LOOK_AT}" --out look
  regard evaluate {run} {run}/corpus/test.en {run}/corpus/test.de
  regard train --train your.en your.de --valid valid.en valid.de --out my-run"""
    )
