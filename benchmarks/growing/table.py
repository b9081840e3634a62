"""From results to Markdown: the powers that were found beside those expected, and processes."""

from collections.abc import Mapping, Sequence
from typing import Any

from growing.fit import GROWTHS
from growing.plan import PANELS

Results = Mapping[str, Any]


def report(results: Results) -> str:
    """Write everything that was measured."""
    parts = [machine_line(results), dates_line(results), slopes_table(results), processes_table(results)]
    return "\n".join(part for part in parts if part)


def machine_line(results: Results) -> str:
    """Say what the machine was."""
    machine = results["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}\n"


def dates_line(results: Results) -> str:
    """Say when each panel was measured, and at which commits."""
    said = []
    for name, measured in results["panels"].items():
        days, commits = (sorted({one[key] for one in measured}) for key in ("date", "commit"))
        said.append(f"{name} {', '.join(days)} ({', '.join(commits)})")
    return "Measured: " + "; ".join(said) + ".\n"


def slopes_table(results: Results) -> str:
    """Write the powers by which costs grow."""
    rows = []
    for growth in GROWTHS:
        found = growth.slopes(results)
        if found is None:
            continue
        first, last, measured, expected = found
        span = f"{PANELS[growth.panel].quantity}, {first:,.0f} to {last:,.0f}"
        bound = "at most " if growth.is_bound else ""
        rows.append([growth.title, span, f"{measured:.2f}", f"{bound}{expected:.2f}"])
    return _markdown(["cost", "grows with", "power found", "power expected"], rows)


def processes_table(results: Results) -> str:
    """Write how fast several processes train."""
    measured = sorted(results["panels"].get("processes", []), key=lambda one: one["value"])
    if not measured:
        return ""
    one = measured[0]["tokens_a_second"] / measured[0]["value"]
    cores = results["machine"]["cores"]
    rows = []
    for point in measured:
        gain = point["tokens_a_second"] / one
        share = f"{gain / min(point['value'], cores):.0%}"
        rows.append([f"{point['value']}", f"{point['tokens_a_second']:,.0f}", f"{gain:.2f}", share])
    return _markdown(["processes", "target tokens/s", "times one process", "of the cores it has"], rows)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
