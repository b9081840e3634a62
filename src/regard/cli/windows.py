"""Files translated window by window, in this process or in several that share the windows.

A window is some lines and how many went before them. Whoever translates it also writes it as text, so that the first
process has little to do with what the others did: it reads, deals out, and writes in order.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypedDict

from regard.cli.forms import Form, formatter
from regard.cli.lines import Failures, complaints, open_output, read_input
from regard.cli.trial import LINES, Plan, Trial
from regard.launch import Launch
from regard.progress import Display, Job
from regard.system import cores

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

    from regard.translation import SearchChanges
    from regard.translator import Translator

_SHARED_WINDOW = 512  # lines: small enough for an even share of a file of some thousand lines
_SHARES = 4  # windows a process of what is known to be all: who is quicker takes more
_ORDER = "order"


@dataclass(frozen=True)
class Order:
    """What a process needs to know to translate as asked, all of it in JSON's types."""

    model: str
    device: str
    precision: str
    threads: int | None
    changes: "SearchChanges"
    form: Form
    shortlist: bool = False


class Window(TypedDict):
    """Lines that are translated together, and how many lines went before."""

    first: int
    lines: Sequence[str]


class Written(TypedDict):
    """What is written for a window, the number of its lines, and those that failed: their numbers and why."""

    text: str
    lines: int
    failures: list[tuple[int, str]]


def translate_files(
    order: Order,
    files: Sequence[Path],
    output: Path | None,
    window: int | None,
    processes: int | None,
    launch: Launch | None,
    display: Display,
) -> None:
    """Translate files, or standard input, to a file or standard output; this is the first process if there are several.

    Raises `typer.Exit` with code 1 if a line could not be translated.
    """
    import torch

    from regard.translator import WINDOW, cut_windows

    asked = _settle_processes(order, processes, launch)
    if asked is not None:
        order = replace(order, threads=asked.threads)
    translator = load_translator(order, launch)
    tell_precision(translator, order.precision, display)
    translator.change_options(order.changes)  # raises for what makes no sense, before anything is written
    # Somebody who types wants an answer to each line; a stream goes faster in large windows.
    typed = not files and sys.stdin is not None and sys.stdin.isatty()
    window = window or (1 if typed else None)
    complain = complaints(display)
    failures = Failures(complain)
    lines = read_input(files, complain)
    write = writer(translator, order)
    with open_output(output, files) as out, display.job("translating", unit="lines") as job:
        emit = partial(_emit, out, job, failures)
        is_tried = asked is None and translator.machine.device.type == "cpu"
        begin = next(cut_windows(lines, window or WINDOW), []) if is_tried else []
        trial = Trial(begin, _size(files), cores())
        for written in trial.run(lambda first, some: write({"first": first, "lines": some}), torch.set_num_threads):
            emit(written)
        plan = asked or trial.choice
        is_all = 0 < len(begin) < WINDOW
        size = window or _window_lines(plan.processes, len(begin) - trial.done if is_all else None)
        windows = _number(cut_windows(chain(begin[trial.done :], lines), size), trial.done)
        with _shared(order, plan, launch, display) as share:
            for written in share(windows, write):
                emit(written)
    failures.end()


def _emit(out: TextIO, job: Job, failures: Failures, written: "Written") -> None:
    """Write what there is for a window, and say which of its lines failed."""
    for number, error in written["failures"]:
        failures.tell(number, error)
    out.write(written["text"])
    out.flush()
    job.advance(written["lines"])


def tell_precision(translator: "Translator", asked: str, display: Display) -> None:
    """Say why, if products do not run in the type of numbers that was asked for."""
    machine = translator.machine
    if asked not in ("auto", machine.precision):
        display.say(f"precision {machine.choices['precision']}")


def load_translator(order: Order, launch: Launch | None) -> "Translator":
    """Load the model of an order, onto this process's own device if torchrun has started several."""
    from regard.machine import choose_own_device
    from regard.translator import load

    device = order.device if launch is None else str(choose_own_device(order.device, launch.local_rank)[0])
    return load(order.model, device=device, precision=order.precision, threads=order.threads, shortlist=order.shortlist)


def writer(translator: "Translator", order: Order) -> Callable[[Window], Written]:
    """Return what translates a window and writes it as text."""
    lines_of = formatter(order.form)

    def write(window: Window) -> Written:
        first = window["first"]
        translations = translator.translate_window(window["lines"], first, **order.changes)
        found = list(enumerate(translations, start=first + 1))
        return {
            "text": "".join(f"{line}\n" for number, one in found for line in lines_of(number, one)),
            "lines": len(found),
            "failures": [(number, one.error) for number, one in found if one.error is not None],
        }

    return write


def _number(windows: Iterable[list[str]], first: int) -> Iterator[Window]:
    for lines in windows:
        yield {"first": first, "lines": lines}
        first += len(lines)


# ---- several processes -----------------------------------------------------------------------------------------------

Share = Callable[[Iterator[Window], Callable[[Window], Written]], Iterable[Written]]


def _settle_processes(order: Order, processes: int | None, launch: Launch | None) -> Plan | None:
    """Return the processes and the threads of each, as torchrun or the user has decided; None if a trial has to."""
    if launch is not None:
        return Plan(launch.size, order.threads or max(1, cores() // launch.local_size))
    if processes is None and order.threads is None and cores() > 1:
        return None
    if processes is None or processes == 1:
        return Plan(1, order.threads)
    return Plan(processes, order.threads or max(1, cores() // processes))


def _window_lines(processes: int, left: int | None) -> int:
    """Return the lines of a window; if it is known how many are `left`, so few that every process gets some."""
    from regard.translator import WINDOW

    if processes == 1:
        return WINDOW
    share = _SHARED_WINDOW if left is None else -(-left // (_SHARES * processes))
    return min(_SHARED_WINDOW, max(LINES, share))


def _size(files: Sequence[Path]) -> int:
    """Return the bytes of files; standard input counts for none, as nobody knows."""
    return sum(path.stat().st_size for path in files if path.is_file())


@contextmanager
def _shared(order: Order, plan: Plan, launch: Launch | None, display: Display) -> Iterator[Share]:
    """Give what translates a stream of windows: this process alone, or together with others."""
    if plan.processes > 1 or plan.reason is not None:
        display.say(plan.describe())
    if plan.processes == 1:
        yield lambda windows, write: map(write, windows)
        return
    from regard.children import start_children
    from regard.sharing import Crew, share_out, torchrun_store

    order = replace(order, threads=plan.threads)
    if launch is not None:
        with torchrun_store(launch) as store:
            store.set(_ORDER, json.dumps(asdict(order)))
            yield lambda windows, write: share_out(Crew(store, plan.processes), windows, write)
        return
    with start_children(plan.processes, help_to_translate, (asdict(order), None)) as children:
        crew = Crew(children.store, plan.processes, children.check)
        yield lambda windows, write: share_out(crew, windows, write)


def follow_order(launch: Launch) -> None:
    """Translate what the first process deals out, as another that torchrun has started; return when all is done."""
    from regard.sharing import await_word, torchrun_store

    with torchrun_store(launch) as store:
        await_word(store, _ORDER)
        help_to_translate(launch.rank, launch.size, store, json.loads(store.get(_ORDER)), launch)


def help_to_translate(rank: int, size: int, store: "Store", order: dict[str, Any], launch: Launch | None) -> None:
    """Translate what the first process deals out, until it has no more."""
    from regard.sharing import Crew, take_part

    known = Order(**{**order, "form": Form(**order["form"])})
    take_part(Crew(store, size), writer(load_translator(known, launch), known))
