import subprocess
import sys
from pathlib import Path

COMMAND = Path(__file__).parents[2] / "benchmarks" / "preparation.py"


def test_the_command_compares_a_file_of_pairs_with_each_number_of_threads(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"the dog sees {number}\tder Hund sieht {number}\n" for number in range(200)))
    command = [sys.executable, COMMAND, file, "--threads", "1", "--rounds", "2", "--vocabulary-size", "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    about, _, _, _, row = done.stdout.splitlines()
    assert about.endswith(f"{file}, 400 lines")
    ratio, quartiles = (cell.strip() for cell in row.split("|")[4:6])
    low, high = map(float, quartiles.split("–"))
    assert 0 < low <= float(ratio) <= high


def test_three_files_are_refused() -> None:
    done = subprocess.run([sys.executable, COMMAND, "a", "b", "c"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected source and target" in done.stderr
