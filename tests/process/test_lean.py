"""What the program leaves out when it is loaded, and that everything is there for whoever asks later."""

import asyncio
import subprocess
import sys

from support.patience import HANG
from support.wire import CERTIFICATE, Reply, Wire

BEGUN = "import gc, sys\nfrom codewhale.process.lean import load_lean\nload_lean()\n"


def began(code: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", BEGUN + code, *arguments], capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_asyncio_and_msgspec_are_there_without_what_is_not_used() -> None:
    left_out = "print('asyncio' in sys.modules, 'msgspec' in sys.modules, 'ssl' in sys.modules, gc.isenabled())\n"
    left_out += "print('typing_extensions' in sys.modules)\n"
    later = "import ssl, typing_extensions\nprint(bool(ssl.OPENSSL_VERSION), bool(typing_extensions.TypedDict))"
    assert began(left_out + later) == ["True", "True", "False", "False", "False", "True", "True"]


def test_what_was_loaded_before_stays() -> None:
    assert began("import ssl\nload_lean()\nprint(sys.modules['ssl'] is ssl)") == ["True"]


def test_fields_are_read_as_they_are_with_typing_extensions() -> None:
    code = """
from typing import NotRequired, Required, TypedDict
import msgspec
class Row(TypedDict, total=False):
    name: Required[str]
    size: NotRequired[int]
print(msgspec.json.decode(b'{"name": "a"}', type=Row))
try:
    msgspec.json.decode(b'{"size": 1}', type=Row)
except msgspec.ValidationError:
    print('refused')
"""
    assert began(code) == ["{'name':", "'a'}", "refused"]


PAGE = """
import asyncio, ssl, httpcore2
from codewhale.services.web.dialler import _pinned

async def main() -> None:
    trusted = ssl.create_default_context(cafile=sys.argv[2])
    async with httpcore2.AsyncConnectionPool(ssl_context=trusted, network_backend=_pinned(["127.0.0.1"])) as pool:
        print((await pool.request("POST", sys.argv[1], content=b"{}")).content.decode())

asyncio.run(main())
"""


async def test_a_page_is_read_over_tls() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage"
    async with Wire([Reply([answer])], tls=True) as wire:
        assert await asyncio.to_thread(began, PAGE, wire.url, str(CERTIFICATE)) == ["page"]
