"""Who may import whom, and what nobody does: the rules of the design, held against every file of the package."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "regard"

# Each room with the rooms it may import. A room is a folder or a file of src/regard; a new one needs a line here.
GROUND = {"errors", "tokens", "seeds", "system", "launch", "files", "progress", "settings"}
LIBRARY = GROUND | {
    *("text", "data", "shortlist", "model", "search", "native", "engine", "machine", "model_folder"),
    *("evaluate", "attention_maps"),
}
MAY_IMPORT: dict[str, set[str]] = {
    # the ground
    "errors": set(),
    "tokens": set(),
    "seeds": set(),
    "system": set(),
    "launch": {"errors"},
    "files": {"errors"},
    "progress": {"errors"},
    "settings": {"errors", "files"},
    "machine": {"errors", "system"},
    "native": set(),
    # text and data: never torch
    "text": {"errors", "tokens", "files", "settings"},
    "data": GROUND | {"text"},
    "shortlist": {"errors", "tokens", "files", "text", "data"},
    "corpora": {"errors", "files", "progress"},
    "evaluate": {"errors", "text"},
    "attention_maps": {"errors"},
    # the model: numbers in, tensors out
    "model": {"errors", "tokens", "native"},  # and model/build.py: settings
    "search": {"errors", "tokens", "model"},
    "engine": {"tokens", "machine", "native", "model", "search"},
    # the tool
    "model_folder": {"errors", "files", "system", "settings", "text", "shortlist", "model"},
    "translation": {"errors", "settings", "text", "search"},
    "translator": LIBRARY | {"translation"},
    # several processes
    "children": {"errors", "system"},
    "sharing": {"errors", "launch", "children"},
    "report": {"errors", "settings", "progress", "evaluate", "attention_maps"},
    "training": LIBRARY | {"translation", "translator", "children", "sharing", "report"},
    "paper": GROUND,
    "cli": LIBRARY | {"corpora", "translation", "translator", "children", "sharing", "training", "paper"},
    "__main__": {"cli"},
    # the public names, which load lazily; the version number is anybody's
    "__init__": {"translation", "translator", "training"},
}
ALSO = {"model/build.py": {"settings"}}  # exceptions, by file
SAME_ROOM = {"presets": "settings", "pictures": "attention_maps"}  # a second file of a room
WITHOUT_TORCH = {
    *GROUND,
    "text",
    "data",
    "shortlist",
    "corpora",
    "paper",
    "report",
    "evaluate",
    "attention_maps",
    "cli",
    "__init__",
}  # so that --help is quick
MAY_PRINT = {"cli", "progress"}


def room_of(path: Path) -> str:
    name = path.parts[0].removesuffix(".py")
    return SAME_ROOM.get(name, name)


FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
every_file = pytest.mark.parametrize("path", FILES, ids=str)


def every_file_of(*rooms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", [path for path in FILES if room_of(path) in rooms], ids=str)


def tree(path: Path) -> ast.Module:
    return ast.parse((SOURCE / path).read_text(encoding="utf-8"))


def imported_modules(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or later, with dots; `from a import b` gives a.b."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: a relative import; this project's are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    """The rooms of regard that a file imports; `import regard` itself is none."""
    names = {module.split(".")[1] for module in imported_modules(path) if module.startswith("regard.")}
    modules = {name for name in names if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()}
    assert all(name.startswith("__") for name in names - modules), (
        f"{path} imports what is not there: {names - modules}"
    )
    return {SAME_ROOM.get(name, name) for name in modules}


def called_names(path: Path) -> Iterator[tuple[str, int]]:
    """What a file calls, with dots where it is written with dots, and the line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def module_name(path: Path) -> str:
    return ".".join(["regard", *path.with_suffix("").parts]).removesuffix(".__init__")


# ---- who may import whom ---------------------------------------------------------------------------------------------


@every_file
def test_a_file_imports_only_what_its_room_may(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"a new room, {room}: say in MAY_IMPORT what it may import"
    allowed = MAY_IMPORT[room] | {room} | ALSO.get(path.as_posix(), set())
    assert imported_rooms(path) <= allowed


def test_lower_rooms_never_import_upper_ones():
    TopologicalSorter(MAY_IMPORT).prepare()  # raises CycleError
    assert {room for room, below in MAY_IMPORT.items() if "cli" in below} == {"__main__"}


def test_exceptions_are_for_files_that_exist():
    assert all((SOURCE / name).is_file() for name in ALSO)
    assert all((SOURCE / f"{name}.py").is_file() for name in SAME_ROOM)


@every_file_of("model", "search")
def test_the_model_and_the_search_know_torch_and_no_files(path):
    packages = {module.split(".")[0] for module in imported_modules(path)}
    # Dropout takes random bits from numpy, and search keeps its books in arrays, wherever the model is.
    extra = {"numpy"} if path.name == "dropout.py" or path.parts[0] == "search" else set()
    assert packages - set(sys.stdlib_module_names) <= {"torch", "regard"} | extra
    assert not packages & {"pathlib", "os", "io", "json", "tempfile"}


# ---- what works without torch ----------------------------------------------------------------------------------------


def test_rooms_without_torch_stand_on_rooms_without_torch():
    for room in WITHOUT_TORCH - {"cli", "__init__"}:  # these two import the rest only when it is needed
        assert MAY_IMPORT[room] <= WITHOUT_TORCH


@every_file_of(*WITHOUT_TORCH - {"cli"})
def test_torch_is_not_imported_where_it_should_not_be(path):
    assert not {module for module in imported_modules(path) if module.split(".")[0] == "torch"}


def test_importing_these_rooms_really_does_not_import_torch():
    modules = [module_name(path) for path in FILES if room_of(path) in WITHOUT_TORCH and path.name != "__main__.py"]
    code = f"""
import sys
from importlib import import_module
for name in {modules!r}:
    import_module(name)
    if "torch" in sys.modules:
        sys.exit(name + " imports torch")
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# ---- what nobody does ------------------------------------------------------------------------------------------------

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "torch.jit.load"}


@every_file
def test_nothing_that_runs_code_from_a_file(path):
    assert not {module.split(".")[0] for module in imported_modules(path)} & UNSAFE_MODULES
    assert not [call for call in called_names(path) if call[0] in UNSAFE_CALLS]
    allowing = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and getattr(node.value, "value", 1) is not False
    ]
    assert not allowing


@every_file_of(*MAY_IMPORT.keys() - MAY_PRINT)
def test_only_the_command_line_and_the_display_print(path):
    assert not [line for name, line in called_names(path) if name in {"print", "sys.stdout.write"}]


@every_file
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(tree(path))
