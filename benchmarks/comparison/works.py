"""What is compared: pieces of work, who does each, and the ratios that regard has to reach."""

from dataclasses import dataclass

OURS = "regard"
_NAMES = {
    OURS: "regard",
    "ctranslate2": "CTranslate2",
    "transformers": "Hugging Face Marian",
    "eole": "eole",
    "opennmt-py": "OpenNMT-py",
    "sockeye": "Sockeye",
}
_TRAINERS = (OURS, "transformers", "eole", "opennmt-py", "sockeye")
_TRANSLATORS = ((OURS, "float32"), (OURS, "int8"), ("ctranslate2", "float32"), ("ctranslate2", "int8"))
_UNITS = {"training": "tokens/s", "memory": "GB", "translation": "sentences/s", "latency": "ms"}
_TITLES = {
    "training": "training, real target tokens a second",
    "memory": "memory while training, peak",
    "translation": "translation, sentences a second",
    "latency": "translation, one sentence at a time",
}


@dataclass(frozen=True)
class Entry:
    """Who does a piece of work, and in which type of numbers."""

    peer: str
    precision: str = "float32"

    @property
    def name(self) -> str:
        """The entry as tables show it."""
        return _NAMES[self.peer] if self.precision == "float32" else f"{_NAMES[self.peer]} {self.precision}"

    @property
    def is_ours(self) -> bool:
        """Say whether this is regard."""
        return self.peer == OURS


@dataclass(frozen=True)
class Work:
    """A piece of work that all entries do, one after the other, round after round."""

    name: str
    kind: str
    shape: str
    beam: int
    entries: tuple[Entry, ...]

    @property
    def unit(self) -> str:
        """What a figure is counted in."""
        return _UNITS[self.kind]

    @property
    def more_is_better(self) -> bool:
        """Say whether a larger figure is a better one."""
        return self.kind in ("training", "translation")

    @property
    def varies(self) -> bool:
        """Say whether a second round may tell something else than the first; memory hardly differs."""
        return self.kind != "memory"

    @property
    def title(self) -> str:
        """The work in words."""
        search = {0: "", 1: ", greedy", 4: ", beam 4"}[self.beam]
        return f"{_TITLES[self.kind]}: {self.shape}{search}"


@dataclass(frozen=True)
class Goal:
    """A ratio, ours to the best of the others', that is to be reached; `precision` None lets each use its best type."""

    title: str
    work: str
    precision: str | None
    at_least: float
    aim: float


def _training(kind: str, shape: str) -> Work:
    return Work(f"{kind}-{shape}", kind, shape, 0, tuple(Entry(peer) for peer in _TRAINERS))


def _translation(kind: str, shape: str, beam: int) -> Work:
    entries = (*(Entry(*one) for one in _TRANSLATORS), Entry("transformers"))
    return Work(f"{kind}-{shape}-{'greedy' if beam == 1 else 'beam'}", kind, shape, beam, entries)


WORKS = {
    work.name: work
    for work in (
        _training("training", "tiny"),
        _training("training", "base"),
        _training("memory", "base"),
        *(
            _translation(kind, shape, beam)
            for shape in ("tiny", "base")
            for kind in ("translation", "latency")
            for beam in (4, 1)
        ),
    )
}

GOALS = (
    Goal("training, tiny", "training-tiny", None, 2.5, 3.5),
    Goal("training, base", "training-base", None, 1.5, 1.7),
    Goal("resident memory, training base", "memory-base", None, 0.7, 0.5),
    Goal("translation, base, beam 4, float32", "translation-base-beam", "float32", 1.3, 1.8),
    Goal("translation, base, beam 4, int8", "translation-base-beam", "int8", 1.3, 2.0),
    Goal("translation, base, greedy, int8", "translation-base-greedy", "int8", 1.0, 1.5),
    Goal("one sentence, base, beam 4, best type (time)", "latency-base-beam", None, 1.0, 0.7),
    Goal("translation, tiny, beam 4", "translation-tiny-beam", None, 1.0, 1.5),
    Goal("one sentence, tiny, beam 4 (time)", "latency-tiny-beam", None, 1.5, 1.0),
)
WITH_GOALS = [name for name in WORKS if any(goal.work == name for goal in GOALS)]
