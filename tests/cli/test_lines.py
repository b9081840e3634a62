"""Lines in: what translate reads and what training reads are the same lines."""

import gzip
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.cli.lines import one_column, one_line, read_input
from regard.text.corpus import read_lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.sampled_from("a \r\n\n\f\v\x85\u2028\ufeff中"), max_size=30),
    mark=st.booleans(),
    packed=st.booleans(),
)
def test_the_lines_of_a_file_are_those_of_a_corpus(tmp_path: Path, text: str, mark: bool, packed: bool) -> None:
    path = tmp_path / "text"
    data = b"\xef\xbb\xbf" * mark + text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    complaints: list[str] = []
    assert list(read_input([path], complaints.append)) == list(read_lines(path))
    assert complaints == []


def test_a_line_that_is_written_has_no_line_end_and_a_column_no_tab() -> None:
    assert one_line("a\nb\tc\u2028d\n") == "a b\tc\u2028d "
    assert one_column("a\nb\tc") == "a b c"
