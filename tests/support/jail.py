"""Attacks: a model that makes given calls in a workspace below a jail, and the mark that none of them may leave."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codewhale.protocol.events import CallFinished
from codewhale.testing import harness
from support.known import know_every_tool
from support.scenes import results


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A call of a script."""
    return {"name": name, "arguments": arguments}


async def played(
    home: Path, workspace: Path, *calls: dict[str, Any], environ: Mapping[str, str] | None = None, **fields: Any
) -> list[CallFinished]:
    """The results of these calls in one answer of a new session; fields are those of OpenSession."""
    if not (home / "config.toml").exists():
        know_every_tool(home)
    async with harness(home, workspace, [{"calls": list(calls)}, {"text": "Done."}], environ) as stage:
        return results(await stage.turn("Go.", await stage.open(**fields)))


def marks(jail: Path) -> list[Path]:
    """Every trace of a payload below the jail; it makes a file PWNED."""
    return [path for path in jail.rglob("*PWNED*") if path.is_file() and path.stat().st_size == 0]


def payload(jail: Path) -> Path:
    """A program that leaves the mark, outside the workspace, and behaves like cat."""
    program = jail / "payload"
    program.write_text(f"#!/bin/sh\ntouch '{jail}/PWNED'\nexec cat\n")
    program.chmod(0o755)
    return program
