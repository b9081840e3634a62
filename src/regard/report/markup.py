"""HTML that is made of elements, so that text can't become markup: whatever is not `Markup` is escaped."""

import re
from html import escape

# What HTML has no place for, and what would turn the order of the letters around it.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: str | float | None) -> Markup:
    """Make an element: children that are not `Markup` are escaped, None is left out; `class_` is written class."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ("meta", "br"):
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | None) -> Markup:
    """Put children one after the other."""
    return Markup("".join(one if isinstance(one, Markup) else _text(one) for one in children if one is not None))


def _text(text: str) -> str:
    return escape(_CONTROLS.sub("\ufffd", text), quote=True)
