"""A real HTTP server on this machine that breaks off, changes its files and misbehaves on request."""

import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Origin:
    """What the server serves, how, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    """ETags by path; a file without one has no mark of its version."""
    break_after: list[int] = field(default_factory=list)
    """For the next answers: how many bytes of the body are sent before the connection is closed."""
    statuses: list[int] = field(default_factory=list)
    """For the next answers: errors instead of the file."""
    redirects: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    lengths: bool = True
    extra_headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Each request's path and Range."""


@contextmanager
def serve(certificate: tuple[Path, Path] | None = None) -> Iterator[Origin]:
    """Serve until the block ends; with a certificate and its key, over HTTPS."""
    origin = Origin()

    class Handler(_Handler):
        served = origin

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    host = "localhost" if certificate else "127.0.0.1"
    origin.address = f"{scheme}://{host}:{server.server_address[1]}"
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield origin
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: Origin

    def do_GET(self) -> None:
        origin, path = self.served, self.path
        asked = self.headers.get("Range")
        origin.asked.append((path, asked))
        if path in origin.redirects:
            self._head(302, {"Location": origin.redirects[path], "Content-Length": "0"})
            return
        if origin.statuses:
            self._head(origin.statuses.pop(0), {"Content-Length": "0"})
            return
        if path not in origin.files:
            self._head(404, {"Content-Length": "0"})
            return
        whole, tag = origin.files[path], origin.tags.get(path)
        headers = {"ETag": tag} if tag else {}
        first, status = 0, 200
        if asked and origin.ranges and self.headers.get("If-Range") == tag:
            found = re.fullmatch(r"bytes=(\d+)-", asked)
            assert found
            first, status = int(found[1]), 206
            if first >= len(whole):
                self._head(416, {"Content-Range": f"bytes */{len(whole)}", "Content-Length": "0"})
                return
            headers["Content-Range"] = f"bytes {first}-{len(whole) - 1}/{len(whole)}"
        body = whole[first:]
        if origin.lengths:
            headers["Content-Length"] = str(len(body))
        self._head(status, {**headers, **origin.extra_headers})
        sent = origin.break_after.pop(0) if origin.break_after else len(body)
        self.wfile.write(body[:sent])
        self.wfile.flush()
        self.close_connection = True

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass
