"""What a screen comes to: small frozen answers which the app carries out."""

from msgspec import Struct


class RunLine(Struct, frozen=True):
    """Run this slash command."""

    line: str


class RunAction(Struct, frozen=True):
    """Do what this row of keys.py does."""

    action: str


class OpenScreen(Struct, frozen=True):
    """Open another screen of the table."""

    name: str
    argument: str = ""


class InsertText(Struct, frozen=True):
    """Put this at the cursor of the composer."""

    text: str


class OpenPath(Struct, frozen=True):
    """Open a file of the workspace in the person's editor, at a line from 1."""

    path: str
    line: int = 1


class Resume(Struct, frozen=True):
    """Go on with another session, or with a copy of it."""

    session: str
    fork: bool = False


class Connected(Struct, frozen=True):
    """A provider was connected: open a session with it. `demo` is the scripted one."""

    provider: str
    model: str = ""
    demo: bool = False


class Said(Struct, frozen=True):
    """Something was done (or not): one line for the person."""

    text: str
    ok: bool = True


Outcome = RunLine | RunAction | OpenScreen | InsertText | OpenPath | Resume | Connected | Said
