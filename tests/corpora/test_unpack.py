"""Unpacking: what is wanted comes out as it went in, and nothing hostile comes out at all."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.corpora.unpack import open_text, unpack
from regard.errors import CorpusError
from regard.progress import QuietDisplay

TEXT = "Grüße.\nZwei.\n".encode()


def make_tar(path: Path, members: dict[str, bytes], change: Callable[[tarfile.TarInfo], None] | None = None) -> Path:
    """Write an archive; `change` alters the header of the last member."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for number, (name, content) in enumerate(members.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if change and number == len(members) - 1:
                change(info)
            tar.addfile(info, io.BytesIO(content) if info.size else None)
    return path


def make_zip(path: Path, members: dict[str, bytes], mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            packed.writestr(info, content)
    return path


def take(archive: Path, name: str, folder: Path) -> bytes:
    out = folder / "out"
    unpack(archive, {name: out}, QuietDisplay())
    return out.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder below another, so that what breaks out of it is seen."""
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    return inner


def nothing_came_out(folder: Path, archive: Path) -> bool:
    return {path for path in folder.parent.parent.rglob("*") if path.is_file() or path.is_symlink()} == {archive}


# ---- what is wanted --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.tar.gz", "a.zip"])
def test_members_come_out_as_they_went_in(folder: Path, name: str) -> None:
    make = make_zip if name.endswith("zip") else make_tar
    archive = make(folder / name, {"x/one.de": TEXT, "./x/two.de": b"two", "x/three": b"not wanted"})
    wanted = {"x/one.de": folder / "1", "x/two.de": folder / "2"}
    unpack(archive, wanted, QuietDisplay())
    assert [path.read_bytes() for path in wanted.values()] == [TEXT, b"two"]
    assert sorted(path.name for path in folder.iterdir()) == ["1", "2", name]


def test_a_folder_in_an_archive_is_no_file(folder: Path) -> None:
    def make_folder(info: tarfile.TarInfo) -> None:
        info.type = tarfile.DIRTYPE

    archive = make_tar(folder / "a.tgz", {"x/one.de": TEXT, "x": b""}, make_folder)
    assert take(archive, "x/one.de", folder) == TEXT
    with pytest.raises(CorpusError, match="does not hold x"):
        take(archive, "x", folder)


def test_a_member_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(CorpusError, match=r"a.tgz: does not hold x/two.de"):
        take(make_tar(folder / "a.tgz", {"x/one.de": TEXT}), "x/two.de", folder)


def test_long_names_are_read(folder: Path) -> None:
    name = "a/" * 150 + "text"
    assert take(make_tar(folder / "a.tgz", {name: TEXT}), name, folder) == TEXT


# ---- what is hostile -------------------------------------------------------------------------------------------------

NAMES = ["../text", "x/../../text", "/etc/text", "..", "x/..", "C:/text", "C:\\text", "..\\text", "\\text"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["a.tgz", "a.zip"])
def test_a_name_that_leads_outside_is_refused_though_it_is_not_wanted(folder: Path, kind: str, name: str) -> None:
    make = make_zip if kind == "a.zip" else make_tar
    archive = make(folder / kind, {name: b"hostile", "text": TEXT})
    with pytest.raises(CorpusError, match="points outside its folder; refused"):
        unpack(archive, {"text": folder / "out"}, QuietDisplay())
    assert nothing_came_out(folder, archive)


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
@pytest.mark.parametrize("wanted", ["text", "other"])
def test_links_and_devices_are_refused(folder: Path, kind: bytes, wanted: str) -> None:
    def change(info: tarfile.TarInfo) -> None:
        info.type, info.linkname, info.size = kind, "/etc/passwd", 0

    archive = make_tar(folder / "a.tgz", {"text": b"", "other": TEXT} if wanted == "other" else {"text": b""}, change)
    if wanted == "other":  # the link comes last, after what is wanted has been read
        archive = make_tar(folder / "a.tgz", {"other": TEXT, "text": b""}, change)
    with pytest.raises(CorpusError, match="a link, a device or the like"):
        unpack(archive, {wanted: folder / "out"}, QuietDisplay())
    assert not (folder / "out").is_symlink()


def test_a_link_in_a_zip_is_refused(folder: Path) -> None:
    archive = make_zip(folder / "a.zip", {"text": b"/etc/passwd"}, mode=0o120777)
    with pytest.raises(CorpusError, match="a link, a device or the like"):
        take(archive, "text", folder)
    assert nothing_came_out(folder, archive)


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
@pytest.mark.parametrize("wanted", ["bomb", "text"])
def test_a_bomb_is_refused_whether_it_is_wanted_or_skipped(folder: Path, name: str, wanted: str) -> None:
    make = make_zip if name == "a.zip" else make_tar
    archive = make(folder / name, {"bomb": bytes(1 << 25), "text": TEXT})
    with pytest.raises(CorpusError, match="unpacks to more than 16,777,216 bytes"):
        take(archive, wanted, folder)


def test_a_bomb_in_gzip_alone_is_refused(folder: Path) -> None:
    path = folder / "text.gz"
    path.write_bytes(gzip.compress(bytes(1 << 25)))
    with open_text(path) as stream, pytest.raises(CorpusError, match="unpacks to more than"):
        stream.read()


def test_a_header_that_would_fill_the_memory_is_refused(folder: Path) -> None:
    archive = folder / "a.tar"
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    archive.write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 12))
    with pytest.raises(CorpusError, match=r"a header of 1,073,741,824 bytes"):
        take(archive, "text", folder)


def test_a_zip_that_lies_about_a_size_is_refused(folder: Path) -> None:
    archive = make_zip(folder / "a.zip", {"text": bytes(1 << 25)})
    lying = archive.read_bytes().replace((1 << 25).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    archive.write_bytes(lying)
    with pytest.raises(CorpusError, match="damaged"):
        take(archive, "text", folder)
    assert (folder / "out").stat().st_size < 1 << 20


def test_too_many_members_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.corpora.unpack._MEMBERS", 3)
    with pytest.raises(CorpusError, match="more than 3 files"):
        take(make_tar(folder / "a.tgz", {str(number): b"" for number in range(4)}), "9", folder)


# ---- what is damaged -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.zip"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_truncated_archive_is_refused(folder: Path, name: str, share: float) -> None:
    make = make_zip if name == "a.zip" else make_tar
    content = "".join(f"line {number}\n" for number in range(3000)).encode()
    archive = make(folder / name, {"text": content})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(content) if name == "a.tar" else share * len(whole))])
    with pytest.raises(CorpusError, match=r"damaged, incomplete|does not hold"):
        take(archive, "text", folder)


@pytest.mark.parametrize("name", ["a.tgz", "a.tar", "a.zip"])
def test_what_is_no_archive_is_refused(folder: Path, name: str) -> None:
    archive = folder / name
    archive.write_bytes(b"<html>not found</html>" * 100)
    with pytest.raises(CorpusError, match="damaged, incomplete or not what its name says"):
        take(archive, "text", folder)


def test_an_encrypted_member_is_refused(folder: Path) -> None:
    archive = make_zip(folder / "a.zip", {"text": TEXT})
    content = bytearray(archive.read_bytes())
    for signature in (b"PK\x03\x04", b"PK\x01\x02"):
        content[content.index(signature) + (6 if signature == b"PK\x03\x04" else 8)] |= 1
    archive.write_bytes(content)
    with pytest.raises(CorpusError, match="damaged, incomplete or not what its name says"):
        take(archive, "text", folder)
