"""The demonstration made ready: its repository in a folder of its own, and a session on it."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable

from codewhale.models.demo import MODEL, NAME, Demo, load_demo
from codewhale.process.launch import Launch, run
from codewhale.process.programs import find_program
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import DemoStarted, OpenSession

GIT_SECONDS = 20.0
_GIT = (
    ("init", "-q"),
    ("config", "user.name", "Demo"),
    ("config", "user.email", "demo@example.invalid"),
    ("add", "-A"),
    ("commit", "-q", "--no-verify", "-m", "A shop with a wrong discount"),
)


async def start_demo(open_session: Callable[[OpenSession], Awaitable[str]]) -> DemoStarted:
    """Make the repository and open a session on it. Raises OSError where no folder can be made."""
    demo = await asyncio.to_thread(load_demo)
    workspace = await asyncio.to_thread(_lay_out, demo)
    if git := find_program("git", workspace):
        for words in _GIT:
            await run(Launch((git, *words), workspace, "none", seconds=GIT_SECONDS, supervised=False, own=True))
    op = OpenSession(workspace, authority=Authority.PERSON, provider=NAME, model=MODEL)
    return DemoStarted(await open_session(op), workspace, demo.prompt)


def _lay_out(demo: Demo) -> str:
    workspace = os.path.join(os.path.realpath(tempfile.mkdtemp(prefix="codewhale-demo-")), demo.folder)
    os.mkdir(workspace)
    for name, text in demo.files.items():
        with open(os.path.join(workspace, name), "x", encoding="utf-8") as file:
            file.write(text)
    return workspace
