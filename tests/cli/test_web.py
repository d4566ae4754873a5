"""Serving the interface to a browser from the command line."""

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.patience import HANG
from support.program import codewhale_program, environment

pytest.importorskip("textual_serve")


def test_it_prints_an_address_with_a_token_and_serves_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "codewhale", "web", "--port", "0", "-w", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(tmp_path)
    ) as child:
        assert child.stdout is not None
        address = urlsplit(child.stdout.readline().strip())
        assert address.hostname == "127.0.0.1" and len(address.query) > 40
        statuses = []
        for path in ("/", f"/?{address.query}"):
            connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=HANG)
            connection.request("GET", path)
            statuses.append(connection.getresponse().status)
            connection.close()
        assert statuses == [403, 302]
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=HANG)
    assert "open that address in a browser" in said and "Traceback" not in said


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = codewhale_program(tmp_path, "web", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "try another port, or 0 for any free one" in done.stderr


@pytest.mark.parametrize("port", ["65536", "x", "-1", "١"])
def test_a_port_that_is_none(tmp_path: Path, port: str) -> None:
    done = codewhale_program(tmp_path, "web", f"--port={port}")
    assert done.returncode == 2 and "is not a port from 0 to 65535" in done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    lines = "import sys; from codewhale.cli import main; sys.modules['textual_serve'] = None; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", lines, "web"], env=environment(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "pip install 'codewhale[web]'" in done.stderr
