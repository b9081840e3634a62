"""Taking turns: settings are tried first, then everybody works once a round, round after round."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from comparison.children import Child, ChildError
from comparison.job import Facts, Job, Setting
from comparison.searching import find_setting
from comparison.works import Entry, Work

Say = Callable[[str], None]
_FAR_BEHIND = 0.7  # of the best other's speed


@dataclass(frozen=True)
class Plan:
    """How a piece of work is to be measured."""

    pythons: Mapping[str, Path]  # of each peer
    materials: Path
    logs: Path
    rounds: int
    quick: bool
    known_settings: Mapping[str, Setting]  # by the entry's name, from an earlier run


def compare(work: Work, entries: Sequence[Entry], plan: Plan, say: Say) -> Iterator[dict[str, Facts]]:
    """Yield after each round for each entry its setting and its figures so far, one a round; or why it has none."""
    found: dict[str, Facts] = {}
    with ExitStack() as stack:
        at_work: dict[str, Child] = {}
        for entry in entries:
            try:
                child = stack.enter_context(_start(work, entry, plan))
                setting = _choose_setting(work, child, plan.known_settings.get(entry.name), plan.quick)
                say(f"  {entry.name}: {describe_setting(setting)}")
                found[entry.name] = {"precision": entry.precision, "setting": setting, "figures": []}
                at_work[entry.name] = child
            except ChildError as error:
                found[entry.name] = {"precision": entry.precision, "failure": str(error)}
                say(f"  {entry.name}: {error}")
        for number in range(plan.rounds):
            for name, child in at_work.items():
                _measure_once(child, found[name], wants_outputs=number == 0, name=name, say=say)
            yield found
            if number == 0:
                behind = far_behind(work, entries, found)
                at_work = {name: child for name, child in at_work.items() if name not in behind}


def _start(work: Work, entry: Entry, plan: Plan) -> Child:
    job = Job(work.kind, work.shape, str(plan.materials), entry.precision, work.beam, plan.quick)
    module = f"comparison.peers.{entry.peer.replace('-', '_')}"
    log = plan.logs / f"{work.name}-{entry.peer}-{entry.precision}.log"
    return Child(plan.pythons[entry.peer], module, job, log)


def _choose_setting(work: Work, child: Child, known: Setting | None, quick: bool) -> Setting:
    """Return the setting of an earlier run if it is one of this child's, else search; a quick look does not search."""
    if known is not None and known.keys() == child.axes.keys():
        return known
    if quick:
        return {name: values[0] for name, values in child.axes.items()}
    return find_setting(child.axes, child.measure, work.more_is_better)


def _measure_once(child: Child, facts: Facts, wants_outputs: bool, name: str, say: Say) -> None:
    if "failure" in facts:
        return
    try:
        measured = child.measure({**facts["setting"], "outputs": wants_outputs})
    except ChildError as error:
        facts["failure"] = str(error)
        say(f"  {name}: {error}")
        return
    facts["figures"].append(measured.pop("figure"))
    if (chosen := measured.pop("chosen", None)) is not None and chosen not in facts.setdefault("chosen", []):
        facts["chosen"].append(chosen)
    facts |= measured
    say(f"  {name}: {facts['figures'][-1]:,.1f}")


def far_behind(work: Work, entries: Sequence[Entry], found: Mapping[str, Facts]) -> list[str]:
    """Return the others that are far behind the best of them in their type of numbers: more rounds change nothing."""
    speeds: dict[str, dict[str, float]] = {}
    for entry in entries:
        if not entry.is_ours and (figures := found[entry.name].get("figures")):
            speed = median(figures) if work.more_is_better else 1 / median(figures)
            speeds.setdefault(entry.precision, {})[entry.name] = speed
    return [name for alike in speeds.values() for name in alike if alike[name] < _FAR_BEHIND * max(alike.values())]


def describe_setting(setting: Setting) -> str:
    """Say a setting in a few words."""
    words = []
    for name, value in setting.items():
        if name == "workers_threads":
            words.append(f"{value[0]} × {value[1]} threads")
        elif name == "processes_threads":
            words.append(describe_setting({"processes": value[0], "threads": value[1]}))
        elif name == "threads":
            words.append(f"{value} thread{'s' if value > 1 else ''}")
        elif name == "processes":
            words.append(f"{value} process{'es' if value > 1 else ''}")
        else:
            words.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(words) or "as it comes"
