"""Fetching a file over HTTPS: resumed after a break, started anew if the file has changed, never downgraded.

What has arrived lies in a hidden file beside the one it is to become, with the mark by which the server knows this
version of the file (its ETag, or the date of its last change). A request for the rest carries that mark (`If-Range`),
so a file that has changed comes whole. Plain HTTP is taken from this machine itself alone.
"""

import http.client
import json
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import regard
from regard.errors import FetchError, UserError
from regard.files import sync, write_file
from regard.progress import Display, Job

_BLOCK_BYTES = 1 << 18
_TIMEOUT = 30.0  # seconds without a byte
_LARGEST = 1 << 37  # bytes; no corpus is larger, and a server may never stop
_REFUSED = (400, 401, 403, 404, 405, 410, 451)  # answers that asking again does not change
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before trying again, as long as nothing new arrives."""


class _BrokenOffError(Exception):
    """The connection ended before the file did; what has arrived stays."""


def fetch(
    address: str, path: Path, display: Display, *, size: int | None = None, pauses: Sequence[float] = PAUSES
) -> None:
    """Fetch a file to `path`, going on with what an earlier attempt has left.

    Raises `FetchError` if that is impossible, and says why.
    """
    check_address(address)
    partial = _Partial(path, address)
    with display.job(f"fetching {path.name}", size, "bytes", done=partial.size) as job:
        failures = 0
        while True:
            before = partial.size
            try:
                _fetch_rest(partial, size, job)
                break
            except _BrokenOffError as error:
                failures = 0 if partial.size > before else failures + 1
                if failures >= len(pauses):
                    kept = f"; {partial.size:,} bytes are kept, and the same command goes on" if partial.size else ""
                    raise FetchError(f"{address}: {error}{kept}") from None
                display.say(f"{path.name}: {error}; trying again after {partial.size:,} bytes")
                time.sleep(pauses[failures])
    partial.finish()


def check_address(address: str) -> None:
    """Raise `FetchError` for an address that is neither HTTPS nor on this machine."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or "")):
        return
    raise FetchError(f"{address}: refused, because it is not HTTPS")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


# ---- what has arrived ------------------------------------------------------------------------------------------------


class _Partial:
    """The part of a file that has arrived, and the server's mark of the version it is a part of."""

    def __init__(self, path: Path, address: str) -> None:
        self.path, self.address = path, address
        self.part, self._about = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.part.json")
        self.mark = self._read_mark()
        if not self.mark:  # nothing can be asked for but the whole
            self.part.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """How many bytes have arrived."""
        return self.part.stat().st_size if self.part.exists() else 0

    def begin(self, mark: str) -> IO[bytes]:
        """Forget what has arrived and open an empty file, for the version with this mark."""
        self.part.unlink(missing_ok=True)
        write_file(self._about, json.dumps({"address": self.address, "mark": mark}))
        self.mark = mark
        return self.part.open("wb")

    def go_on(self) -> IO[bytes]:
        """Open the file to append to it."""
        return self.part.open("ab")

    def finish(self) -> None:
        """Give the file its name."""
        sync(self.part)
        self.part.replace(self.path)
        self._about.unlink(missing_ok=True)
        sync(self.path.parent)

    def _read_mark(self) -> str:
        try:
            about = json.loads(self._about.read_text(encoding="utf-8"))
            return str(about["mark"]) if about["address"] == self.address else ""
        except (OSError, ValueError, TypeError, KeyError):
            return ""


# ---- one request -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Answer:
    """What a server's answer says about its body."""

    first: int  # the place of its first byte in the file
    total: int | None  # bytes of the whole file
    mark: str


def _fetch_rest(partial: _Partial, size: int | None, job: Job) -> None:
    """Ask for what is missing and append it; raises `_BrokenOffError` if it does not come to the end."""
    there = partial.size
    headers = {"User-Agent": f"regard/{regard.__version__}", "Accept-Encoding": "identity"}
    if there:
        headers |= {"Range": f"bytes={there}-", "If-Range": partial.mark}
    try:
        response = _open(urllib.request.Request(partial.address, headers=headers))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and there:
                if _total_of_range(error.headers) == there:
                    return
                partial.begin("").close()
                raise _BrokenOffError("the file at the origin is another now") from None
        raise _explain_status(partial.address, error) from None
    with response:
        answer = _read_answer(response, there)
        _check_size(partial, answer, size)
        job.total = answer.total
        with partial.go_on() if answer.first else partial.begin(answer.mark) as file:
            job.advance(answer.first - job.done)
            _copy(response, file, answer, job)


def _copy(response: http.client.HTTPResponse, file: IO[bytes], answer: _Answer, job: Job) -> None:
    end = _LARGEST if answer.total is None else answer.total
    done = answer.first
    while True:
        try:
            block = response.read1(_BLOCK_BYTES)
        except (http.client.HTTPException, OSError) as error:
            raise _BrokenOffError(f"the connection broke ({_reason(error)})") from None
        if not block:
            break
        done += len(block)
        if done > end:
            raise FetchError(f"{file.name}: more than {end:,} bytes came, which is not what was announced")
        file.write(block)
        job.advance(len(block), note=f"{job.done / 1e6:,.1f} MB, {job.rate / 1e6:,.1f} MB/s")
    if answer.total is not None and done < answer.total:
        raise _BrokenOffError("the connection ended before the file did")


def _read_answer(response: http.client.HTTPResponse, there: int) -> _Answer:
    headers = response.headers
    if headers.get("Content-Encoding", "identity") != "identity":
        raise FetchError(f"{response.url}: came encoded as {headers['Content-Encoding']}, which was not asked for")
    mark = headers.get("ETag", "")
    if not mark or mark.startswith("W/"):  # a weak one promises the same meaning, not the same bytes
        mark = headers.get("Last-Modified", "")
    if response.status == http.client.PARTIAL_CONTENT:
        unit, _, rest = headers.get("Content-Range", "").partition(" ")
        if unit != "bytes" or rest.partition("-")[0] != str(there):
            raise FetchError(f"{response.url}: was asked for the bytes from {there:,}, answered {rest or 'others'}")
        return _Answer(there, _total_of_range(headers), mark)
    length = headers.get("Content-Length", "")
    return _Answer(0, int(length) if length.isdigit() else None, mark)


def _total_of_range(headers: Message) -> int | None:
    total = headers.get("Content-Range", "").rpartition("/")[2]
    return int(total) if total.isdigit() else None


def _check_size(partial: _Partial, answer: _Answer, size: int | None) -> None:
    if size is not None and answer.total not in (None, size):
        raise FetchError(
            f"{partial.address}: has {answer.total:,} bytes, and the catalogue knows {size:,}: another file than it was"
        )
    free = shutil.disk_usage(partial.path.parent).free
    missing = (answer.total or 0) - answer.first
    if missing > free:
        raise UserError(f"{partial.path.parent}: {missing:,} bytes are to be fetched and {free:,} are free")


# ---- connections -----------------------------------------------------------------------------------------------------


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Follow a redirection to an address that may be fetched, and never from HTTPS to anything less."""
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise FetchError(f"{req.full_url}: leads on to {newurl}, which is not HTTPS; refused")
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    opener = urllib.request.build_opener(secure, _SafeRedirects)
    try:
        response = opener.open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError:
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise FetchError(f"{request.full_url}: its certificate is not trusted: {reason.verify_message}") from None
        if isinstance(reason, socket.gaierror):
            raise FetchError(
                f"{request.full_url}: its name can't be resolved; is there a connection? A folder that has the files "
                "is named with --from"
            ) from None
        raise _BrokenOffError(f"no connection ({_reason(reason)})") from None
    assert isinstance(response, http.client.HTTPResponse)
    return response


def _explain_status(address: str, error: urllib.error.HTTPError) -> Exception:
    answer = f"the server answers {error.code} {error.reason}"
    if error.code in _REFUSED or error.code < 400:
        return FetchError(f"{address}: {answer}; if the corpus has moved, fetch it by hand and name its folder: --from")
    return _BrokenOffError(answer)


def _reason(error: object) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
