"""Running the command line: in this process, which is quick, or in one of its own, which is the real thing."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.cli.main import main

REGARD = Path(sys.executable).parent / "regard"
ALONE = ("--processes", "1", "--threads", "1", "--device", "cpu")
TINY = (
    *("--set", "model.d_model=32", "--set", "model.d_ff=64", "--set", "model.heads=2", "--set", "model.dropout=0"),
    *("--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1", "--set", "training.warmup=20"),
    *("--set", "training.batch_tokens=512", "--set", "training.learning_rate=0.01", *ALONE),
)


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output, which all end in "\\n"."""
        assert not self.out or self.out.endswith("\n")
        return self.out.split("\n")[:-1]


class Here:
    """Runs regard in this process, with files as its standard streams."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, stdin: str | bytes = b"", without: str = "") -> Ended:
        """Run a command to its end; `without` names a standard stream that is closed."""
        given, out, err = (self._folder / name for name in ("stdin", "stdout", "stderr"))
        given.write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        with (
            given.open(encoding="utf-8") as stdin_file,
            out.open("w", encoding="utf-8") as stdout_file,
            err.open("w", encoding="utf-8", errors="backslashreplace") as stderr_file,
            self._monkeypatch.context() as patch,
        ):
            patch.setattr(sys, "argv", ["regard", *map(str, arguments)])
            patch.setattr(sys, "stdin", stdin_file)
            patch.setattr(sys, "stdout", stdout_file)
            patch.setattr(sys, "stderr", stderr_file)
            if without:
                patch.setattr(sys, without, None)
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        assert isinstance(code, int)
        ended_as = Ended(code, out.read_bytes().decode(), err.read_bytes().decode())
        assert "Traceback" not in ended_as.err
        return ended_as


Regard = Callable[..., Ended]


def apart(*arguments: str | bytes, stdin: bytes = b"", **environment: str) -> Ended:
    """Run regard in a process of its own."""
    done = subprocess.run(
        [REGARD, *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
