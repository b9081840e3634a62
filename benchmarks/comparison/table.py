"""From figures to tables: medians, spread, ratios, and how the ratios stand to what is to be reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from comparison.rounds import describe_setting
from comparison.works import GOALS, OURS, WORKS, Goal, Work

Entries = Mapping[str, Mapping[str, Any]]  # what `comparison.rounds.compare` returns
_GIGA = 1e9


@dataclass(frozen=True)
class Ratio:
    """Ours to the best of the others': by medians, and in the rounds that were worst and best for us."""

    ours: str
    other: str
    value: float
    lowest: float
    highest: float


def find_ratio(work: Work, entries: Entries, precision: str | None = None) -> Ratio | None:
    """Return the ratio of our best entry to the others' best, of one type of numbers or of any; None without both."""
    measured = {
        name: facts["figures"]
        for name, facts in entries.items()
        if facts.get("figures") and "failure" not in facts and precision in (None, facts["precision"])
    }
    mine = {name: figures for name, figures in measured.items() if _is_ours(name)}
    theirs = {name: figures for name, figures in measured.items() if not _is_ours(name)}
    if not mine or not theirs:
        return None
    ours, other = _leader(work, mine), _leader(work, theirs)
    rounds = [one / two for one, two in zip(mine[ours], theirs[other], strict=False)]
    return Ratio(ours, other, median(mine[ours]) / median(theirs[other]), min(rounds), max(rounds))


def _is_ours(name: str) -> bool:
    return name.partition(" ")[0] == OURS


def _leader(work: Work, measured: Mapping[str, Sequence[float]]) -> str:
    medians = {name: median(figures) for name, figures in measured.items()}
    choose = max if work.more_is_better else min
    return choose(medians, key=lambda name: medians[name])


def standing(goal: Goal, ratio: float, more_is_better: bool) -> str:
    """Say whether a ratio reaches what is aimed at, what is asked at least, or neither."""
    sign = 1 if more_is_better else -1
    if sign * ratio >= sign * goal.aim:
        return "aim reached"
    return "minimum reached" if sign * ratio >= sign * goal.at_least else "below"


# ---- Markdown --------------------------------------------------------------------------------------------------------


def goals_table(results: Mapping[str, Any]) -> str:
    """Write the ratios that are to be reached, with those that were."""
    rows = []
    for goal in GOALS:
        if goal.work not in results["works"]:
            continue
        work = WORKS[goal.work]
        ratio = find_ratio(work, results["works"][goal.work]["entries"], goal.precision)
        wanted = [f"{goal.at_least:g}", f"{goal.aim:g}"]
        if ratio is None:
            rows.append([goal.title, "not measured", "", *wanted, "", ""])
            continue
        spread = f"{ratio.lowest:.2f}–{ratio.highest:.2f}"
        stands = standing(goal, ratio.value, work.more_is_better)
        rows.append([goal.title, f"{ratio.value:.2f}", spread, *wanted, stands, ratio.other])
    return _markdown(["ours / best other", "ratio", "rounds", "at least", "aim", "", "best other"], rows)


def work_table(work: Work, entries: Entries) -> str:
    """Write one work's figures, an entry a line."""
    rounds = max((len(facts["figures"]) for facts in entries.values() if "figures" in facts), default=0)
    rows = [[name, *_row(work, facts, rounds)] for name, facts in entries.items()]
    return _markdown([work.title, f"median, {work.unit}", "lowest–highest", "setting", "same output"], rows)


def _row(work: Work, facts: Mapping[str, Any], rounds: int) -> list[str]:
    if "failure" in facts:
        return ["–", "", facts["failure"].splitlines()[0], ""]
    figures = [figure / _GIGA if work.kind == "memory" else figure for figure in facts["figures"]]
    same = f"{facts['same_as_ours']:.0%}" if "same_as_ours" in facts else ""
    setting = " or ".join(describe_setting({**facts["setting"], **chosen}) for chosen in facts.get("chosen", [{}]))
    whole = len(figures) == rounds
    spread = f"{_number(min(figures))}–{_number(max(figures))}" if whole else "far behind, one round"
    return [_number(median(figures)), spread, setting, same]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def report(results: Mapping[str, Any]) -> str:
    """Write everything that was measured."""
    parts = [goals_table(results)]
    for name, work in WORKS.items():
        if name in results["works"]:
            measured = results["works"][name]
            rounds = "1 round" if measured["rounds"] == 1 else f"{measured['rounds']} rounds"
            machine = "{processor}, {cores} cores, {memory}, {system}".format(**measured["machine"])
            parts.append(f"{measured['date']}, commit {measured['commit']}, {rounds}; {machine}\n")
            parts.append(work_table(work, measured["entries"]))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()))
    return "\n".join([*parts, f"versions: {versions}"])
