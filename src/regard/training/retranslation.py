"""Retranslation: the training text twice more, each time with one side as a model of the same kind translates it.

Nguyen and others 2020, 'Data Diversification'. Two models are trained first, one that translates as the run shall and
one that translates back. Each is a run of its own, in the run's folder, and goes on where it was if it was stopped.
There may be more that translate as the run shall, with other seeds and the vocabulary of the first; they search as one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from regard.files import explain_disk_errors, new_folder
from regard.progress import Display
from regard.seeds import mix
from regard.settings import Corpus, Settings
from regard.text.corpus import read_pairs
from regard.training.run import Run
from regard.translator import Translator, join, load

FORWARD, BACKWARD = "forward", "backward"
FOLDER = "retranslation"


def retranslate(
    settings: Settings,
    run: Run,
    train: Callable[[Settings, Path], Path],
    display: Display,
    device: str = "auto",
    threads: int | None = None,
) -> Settings:
    """Return settings whose training corpora are also there as translated, forward and back; make what is missing.

    `train` trains by settings in a folder, or finds that nothing it began with has changed, and returns the model's.
    Settings without retranslation stay as they are.
    """
    if not settings.data.retranslation_steps:
        return settings
    helpers = run.folder / FOLDER
    texts = helpers / "texts"
    if not run.prepared.exists():  # from then on, the data remembers these texts as it does all others
        models: dict[str, list[Path]] = {FORWARD: [], BACKWARD: []}
        for way, name, helper in _helpers(settings, helpers):
            display.say(f"a model that translates {way} comes first, for data.retranslation_steps")
            models[way].append(train(helper, helpers / name))
        if not texts.exists():
            with explain_disk_errors(texts), new_folder(texts) as folder:
                for way, found in models.items():
                    translator = join([load(model, device=device, threads=threads) for model in found])
                    _translate_corpora(settings.data.train, way, translator, folder, display)
    corpora = [
        Corpus(**_files(texts, way, number), weight=corpus.weight)
        for way in (FORWARD, BACKWARD)
        for number, corpus in enumerate(settings.data.train)
    ]
    return _change(settings, data={"train": (*settings.data.train, *corpora)})


def _helpers(settings: Settings, folder: Path) -> Iterator[tuple[str, str, Settings]]:
    """Yield which way each model translates, the name of its run below `folder`, and its settings."""
    first = _forward(settings)
    yield FORWARD, FORWARD, first
    vocabulary = {"vocabulary": settings.data.vocabulary or Run(folder / FORWARD).vocabulary}
    for number in range(1, settings.data.retranslation_models):
        other = _change(first, data=vocabulary, training={"seed": mix(settings.training.seed, 1, number)})
        yield FORWARD, f"{FORWARD}-{number + 1}", other
    yield BACKWARD, BACKWARD, _backward(settings, folder / "turned")


def _forward(settings: Settings) -> Settings:
    """Return the settings of a model that translates as the run shall: the run's own but for steps, seed and beam."""
    steps, training = settings.data.retranslation_steps, settings.training
    changes = {"steps": steps, "warmup": min(training.warmup, steps), "seed": mix(training.seed, 1), "risk_steps": 0}
    alone = {"retranslation_steps": 0, "retranslation_models": 1, "retranslation_beam": None}
    beam = settings.data.retranslation_beam or settings.search.beam
    return _change(settings, data=alone, training=changes, search={"beam": beam})


def _backward(settings: Settings, folder: Path) -> Settings:
    """Return those of a model that translates back; corpora in one file are laid into two below `folder`."""
    data = settings.data
    corpora = {
        part: tuple(_turned(corpus, folder / f"{part}-{number}") for number, corpus in enumerate(getattr(data, part)))
        for part in ("train", "valid")
    }
    languages = {"source_language": data.target_language, "target_language": data.source_language}
    return _change(_forward(settings), data={**corpora, **languages}, training={"seed": mix(settings.training.seed, 2)})


def _turned(corpus: Corpus, folder: Path) -> Corpus:
    if corpus.pairs is None:
        return corpus.model_copy(update={"source": corpus.target, "target": corpus.source})
    with (  # anew each time: the file may have been mended since
        explain_disk_errors(folder),
        new_folder(folder) as texts,
        _open(texts / "source") as source,
        _open(texts / "target") as target,
    ):
        for pair in read_pairs(corpus):
            source.write(f"{pair.target}\n")
            target.write(f"{pair.source}\n")
    return Corpus(source=folder / "source", target=folder / "target", weight=corpus.weight)


def _change(settings: Settings, **sections: Mapping[str, object]) -> Settings:
    changed = {name: getattr(settings, name).model_copy(update=update) for name, update in sections.items()}
    return settings.model_copy(update=changed)


def _translate_corpora(
    corpora: Iterable[Corpus], way: str, translator: Translator, folder: Path, display: Display
) -> None:
    """Write each corpus as two texts: the side that is read as it was, and the other as it is translated."""
    for number, corpus in enumerate(corpora):
        files = _files(folder, way, number)
        sentences = (pair.source if way == FORWARD else pair.target for pair in read_pairs(corpus))
        with (
            _open(files["source"]) as source,
            _open(files["target"]) as target,
            display.job(f"translating {way}", unit="lines") as job,
        ):
            read, written = (source, target) if way == FORWARD else (target, source)
            for found in translator.translate_lines(sentences):
                read.write(f"{found.source}\n")
                written.write(f"{found.text}\n")
                job.advance()


def _files(folder: Path, way: str, number: int) -> dict[str, Path]:
    return {side: folder / f"{way}-{number}.{side}" for side in ("source", "target")}


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")
