"""`regard doctor`: what this machine can do, what regard will use of it, and why."""

import platform
import sys

EXAMPLES = """
regard doctor
"""


def doctor() -> None:
    """Show what this machine can do, what regard will use, and why."""
    import torch

    from regard import __version__
    from regard.cli.table import print_table
    from regard.machine import bfloat16_works, choose_machine, matrix_speed
    from regard.native.library import find_library
    from regard.system import cores, memory_total

    machine, library = choose_machine(), find_library()
    cpu = "works" if bfloat16_works() else "not safe here: a probe of it failed, so float32 is used"
    rows = [
        ["regard", __version__],
        ["Python", f"{platform.python_version()} ({sys.executable})"],
        ["PyTorch", torch.__version__],
        ["system", platform.platform()],
        ["cores", str(cores())],
        ["memory", f"{memory_total() / 2**30:.1f} GiB"],
        ["GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none found"],
        ["bfloat16 on the CPU", cpu],
        [
            "float32 products",
            f"{matrix_speed(1):,.0f} GFLOP/s on one thread, {matrix_speed(machine.threads):,.0f} on {machine.threads}",
        ],
        ["compiled library", "none: torch computes" if library is None else f"for processors with {library.kind}"],
        *([f"regard will use: {name}", str(choice)] for name, choice in machine.choices.items()),
    ]
    print_table(["what", "found"], rows)
    missing = _missing()
    print(f"\nMissing: {', '.join(missing)}" if missing else "\nEverything regard needs is installed.")


def _missing() -> list[str]:
    from importlib.util import find_spec

    needed = ("numpy", "sentencepiece", "safetensors", "pydantic", "sacrebleu", "sacremoses", "matplotlib")
    return [name for name in needed if find_spec(name) is None]
