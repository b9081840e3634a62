"""From rows to tables in Markdown: means over seeds beside what is published, every run, what changes are worth."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean

from quality.plan import ResultError
from quality.standards import STANDARDS, Standard, Texts
from quality.store import Row
from regard.progress import duration

BEGIN, END = "<!-- benchmarks/results.py table -->", "<!-- end of the tables -->"
_NOT_YET = "not measured yet"
_SEEDS = 3  # whose mean is held against a standard
_BLEU, _CHRF, _PAPER = "BLEU", "chrF2", "paper BLEU"


def report(rows: Sequence[Row]) -> str:
    """Write everything that was measured."""
    tested, others = ([row for row in rows if bool(row["test"]) is wanted] for wanted in (True, False))
    parts = {
        "### On test sets": headline_table(tested),
        "### Every run": "\n".join(map(runs_section, _by_name(tested))) or f"{_NOT_YET}\n",
        "### What changes are worth, on validation text": changes_table(others, rows),
    }
    return "\n".join(f"{title}\n\n{text}" for title, text in parts.items())


def insert(page: str, rows: Sequence[Row]) -> str:
    """Return a page with the tables between its marks made anew; raises `ResultError` if it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ResultError(f"the page has no marks for the tables: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{report(rows)}\n{END}{after}"


# ---- the tables ------------------------------------------------------------------------------------------------------


def headline_table(tested: Sequence[Row]) -> str:
    """Write the mean of each name's runs on its test set, and for recipes without any that there is none."""
    head = ["run", "test set", "BLEU", "lowest–highest", "seeds", "published", "at least", "aim", "", "weights", "time"]
    lines = [_headline(runs) for runs in _by_name(tested)]
    measured = {row["name"] for row in tested}
    lines += [
        [recipe.stem, standard.test.title, _NOT_YET, "", "", *_wanted(standard), "", "", ""]
        for recipe, standard in STANDARDS.items()
        if recipe.stem not in measured
    ]
    return _markdown(head, lines)


def _headline(runs: Sequence[Row]) -> list[str]:
    first = runs[0]
    figures = [_value(row, "test", _BLEU) for row in runs]
    standard = _standard(first)
    times = [row["seconds"] for row in runs]
    return [
        first["name"],
        Texts(*map(Path, first["test"])).title,
        f"**{mean(figures):.2f}**",
        _spread(figures),
        str(len(runs)),
        *(_wanted(standard) if standard else ["", "", ""]),
        standing(standard, figures) if standard else "",
        f"{first['weights']:,}",
        f"{duration(mean(times))}, at most {duration(max(times))}",
    ]


def _standard(row: Row) -> Standard | None:
    """Return what a run is held against: nothing, if it was trained or tested on other text than its recipe names."""
    standard = STANDARDS.get(Path(row["recipe"]))
    if standard is None or row["train"] or row["test"] != [str(standard.test.source), str(standard.test.target)]:
        return None
    return standard


def _wanted(standard: Standard) -> list[str]:
    goals = ["" if goal is None else f"{goal:.2f}" for goal in (standard.at_least, standard.aim)]
    return [standard.published, *goals]


def standing(standard: Standard, figures: Sequence[float]) -> str:
    """Say whether the mean over seeds reaches what is aimed at, what is asked at least, or neither, or is none yet."""
    if standard.at_least is None or standard.aim is None:
        return ""
    if len(figures) < _SEEDS:
        return f"{len(figures)} of {_SEEDS} seeds"
    if mean(figures) >= standard.aim:
        return "aim reached"
    return "minimum reached" if mean(figures) >= standard.at_least else "below"


def runs_section(runs: Sequence[Row]) -> str:
    """Write each run of one name, how its scores were computed, and the commands."""
    first = runs[0]
    head = ["seed", "BLEU", "95 %", "chrF2", "paper BLEU", "BLEU, validation", "steps", "time", "tokens/s", "commit"]
    lines = [
        [
            str(row["seed"]),
            f"{_value(row, 'test', _BLEU):.2f}",
            "–".join(f"{end:.2f}" for end in _score(row, "test", _BLEU)["interval"]),
            f"{_value(row, 'test', _CHRF):.2f}",
            f"{_value(row, 'test', _PAPER):.2f}",
            f"{_value(row, 'valid', _BLEU):.2f}",
            f"{row['steps']:,}",
            _time(row),
            f"{row['tokens_a_second']:,}",
            f"{row['commit']}, {row['date']}",
        ]
        for row in runs
    ]
    parts = [f"#### {first['name']}\n", f"{_machines(runs)}. {_changes(first)}.\n", _markdown(head, lines)]
    parts += [f"- seed {row['seed']}: {_score(row, 'test', _BLEU)['detail']}" for row in runs]
    parts += [f"- `{signature}`" for signature in _signatures(runs)]
    commands = [command for row in runs for command in row["commands"]]
    return "\n".join([*parts, "", "```text", *commands, "```", ""])


def changes_table(rows: Sequence[Row], all_rows: Sequence[Row]) -> str:
    """Write the runs that saw no test set, each beside the runs that it changes, with the same seeds."""
    head = ["run", "changes", "BLEU, validation", "lowest–highest", "loss", "seeds", "beside", "BLEU", "loss", "time"]
    lines = []
    for runs in _by_name(rows):
        bleu, loss = _means(runs)
        beside = ["", "", ""]
        changed = _changed_runs(runs, all_rows)
        if changed is not None:
            other_bleu, other_loss = _means(changed)
            beside = [changed[0]["name"], f"{bleu - other_bleu:+.2f}", f"{loss - other_loss:+.3f}"]
        lines.append(
            [
                *(
                    runs[0]["name"],
                    _changes(runs[0]),
                    f"{bleu:.2f}",
                    _spread([_value(row, "valid", _BLEU) for row in runs]),
                ),
                *(f"{loss:.3f}", ", ".join(str(row["seed"]) for row in runs)),
                *(*beside, duration(mean(row["seconds"] for row in runs))),
            ]
        )
    return _markdown(head, lines) if lines else f"{_NOT_YET}\n"


def _means(runs: Sequence[Row]) -> tuple[float, float]:
    """Return BLEU and the last loss on validation text, as means over runs."""
    return mean(_value(row, "valid", _BLEU) for row in runs), mean(row["log"]["loss"][-1] for row in runs)


def _changed_runs(runs: Sequence[Row], all_rows: Sequence[Row]) -> list[Row] | None:
    """Return the runs that these change, with the same seeds: those that have most of their overrides and no others.

    None unless all seeds were measured.
    """
    first, seeds = runs[0], {row["seed"] for row in runs}
    found: list[Row] | None = None
    for others in _by_name(all_rows):
        same = [row for row in others if row["seed"] in seeds]
        shared = set(others[0]["overrides"])
        if (
            len(same) == len(seeds)
            and _trained_on(others[0]) == _trained_on(first)
            and shared < set(first["overrides"])
            and (found is None or len(shared) > len(found[0]["overrides"]))
        ):
            found = same
    return found


# ---- parts of rows ---------------------------------------------------------------------------------------------------


def _by_name(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the runs of each name: recipes in their order, then what was derived from them."""
    order = {recipe.stem: number for number, recipe in enumerate(STANDARDS)}
    ordered = sorted(rows, key=lambda row: (order.get(row["name"], len(order)), row["name"], row["seed"]))
    return [list(runs) for _, runs in groupby(ordered, key=lambda row: row["name"])]


def _trained_on(row: Row) -> tuple[object, ...]:
    return row["recipe"], row["train"], row["valid"], row["tokenized"]


def _score(row: Row, part: str, metric: str) -> Row:
    return next(score for score in row[f"{part}_scores"] if score["metric"] == metric)


def _value(row: Row, part: str, metric: str) -> float:
    return float(_score(row, part, metric)["value"])


def _spread(figures: Sequence[float]) -> str:
    return f"{min(figures):.2f}–{max(figures):.2f}"


def _changes(row: Row) -> str:
    changes = [f"`{override}`" for override in row["overrides"]]
    changes += [f"trained on `{'` and `'.join(row['train'])}`"] if row["train"] else []
    return ", ".join([f"`{row['recipe']}`", *changes])


def _machines(runs: Sequence[Row]) -> str:
    return "; ".join(dict.fromkeys(row["machine"] for row in runs))


def _time(row: Row) -> str:
    return duration(row["seconds"]) + (f" in {row['sessions']} sessions" if row["sessions"] > 1 else "")


def _signatures(runs: Sequence[Row]) -> list[str]:
    metrics = (_BLEU, _CHRF, _PAPER)
    return list(dict.fromkeys(_score(row, "test", metric)["signature"] for metric in metrics for row in runs))


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines]) + "\n"
