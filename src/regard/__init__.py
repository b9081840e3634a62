"""The Transformer of 'Attention Is All You Need' as a complete translation tool.

Public names are loaded when they are first used, so that importing regard, and `regard --help`, never imports torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.training.finetune import finetune
    from regard.training.loop import train
    from regard.translation import Translation
    from regard.translator import Translator, load

__version__ = "0.1.0"
__all__ = ["Translation", "Translator", "__version__", "finetune", "load", "train"]

_HOME = {
    "Translation": "regard.translation",
    "Translator": "regard.translator",
    "finetune": "regard.training.finetune",
    "load": "regard.translator",
    "train": "regard.training.loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
