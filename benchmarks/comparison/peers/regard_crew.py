"""regard's translator in one process, or in several that stay and share texts as `regard translate --processes` does.

A file of its own, because the other processes import it by name.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from typing import Any

import torch
from torch.distributed import PrefixStore, Store

import regard
from regard.children import start_children
from regard.sharing import Crew, share_out, take_part

_PATIENCE = timedelta(hours=12)  # of a process that waits while other toolkits are measured

Texts = Sequence[str]
Do = Callable[[dict[str, Any]], list[list[str]]]


class Translators:
    """Processes that have loaded a model and translate texts to subwords; started when first needed."""

    def __init__(self, model: str, precision: str) -> None:
        self._model, self._precision = model, precision
        self._do = load_translator(model, precision)
        self._stack = ExitStack()
        self._streams = count()
        self._processes = 1

    def translate(self, texts: Texts, processes: int, threads: int, window: int, **changes: Any) -> list[list[str]]:
        """Translate texts, `window` of them at a time in whichever process is free."""
        torch.set_num_threads(threads)
        windows = ({"texts": texts[at : at + window], "changes": changes} for at in range(0, len(texts), window))
        return [tokens for done in self._share(windows, processes) for tokens in done]

    def _share(self, windows: Iterator[dict[str, Any]], processes: int) -> Iterator[list[list[str]]]:
        if processes == 1:
            return map(self._do, windows)
        if self._processes != processes:
            self._start(processes)
        number = next(self._streams)
        self._children.store.set(f"stream/{number}", "")
        store = PrefixStore(f"stream/{number}", self._children.store)
        return share_out(Crew(store, processes, self._children.check), windows, self._do)

    def _start(self, processes: int) -> None:
        """Start the other processes and wait until each has its model."""
        self._stack.close()
        arguments = (self._model, self._precision)
        self._children = self._stack.enter_context(start_children(processes, help_translate, arguments))
        self._processes, self._streams = processes, count()
        for rank in range(1, processes):
            self._children.store.wait([f"ready/{rank}"], _PATIENCE)


def help_translate(rank: int, size: int, store: Store, model: str, precision: str) -> None:
    """Take part in one stream of texts after the other, with one thread."""
    do = load_translator(model, precision)
    torch.set_num_threads(1)
    store.set(f"ready/{rank}", "")
    for number in count():
        store.wait([f"stream/{number}"], _PATIENCE)
        take_part(Crew(PrefixStore(f"stream/{number}", store), size), do)


def load_translator(model: str, precision: str) -> Do:
    """Load a model and return what translates a window of texts; raises `RuntimeError` if its type can't be had."""
    translator = regard.load(model, precision=precision)
    if translator.machine.precision != precision:
        raise RuntimeError(f"regard has no {precision} here: {translator.machine.choices['precision']}")

    def do(piece: dict[str, Any]) -> list[list[str]]:
        found = translator.translate_window(piece["texts"], **piece["changes"])
        return [list(one.candidates[0].tokens) for one in found]

    return do
