import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from origin import Origin, serve


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A server on this machine."""
    with serve() as one:
        yield one


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that nobody has signed but itself, and its key."""
    if which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "certificate.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files
