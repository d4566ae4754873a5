"""Slash commands from Markdown files: a person's own, and those of a project that are trusted. One is words for the
model with places for arguments; nothing of it is ever run."""

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from codewhale.commands.base import CommandContext, OwnCommand, misuse
from codewhale.lib.text import one_line, scrub_surrogates
from codewhale.permissions.markdown_files import COMMAND_FOLDER, command_files, head_and_body, steering_bytes
from codewhale.permissions.trust import TrustStore
from codewhale.protocol.errors import CodeWhaleError, ConfigError
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import CommandOutput, SendMessage
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.requests import Do

MESSAGE_LIMIT = 256 << 10
_NAME = re.compile(r"[^\W\d_][\w-]{0,39}")
_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9](?!\d))")
_MODES = (Mode.PLAN, Mode.AGENT)


class CommandFile(Struct, frozen=True):
    """A file of a command; `path` is how it is shown, `problem` why it cannot be used ("" where it can). `mode` None
    and `model` "" are those of the session."""

    name: str
    path: str
    description: str = ""
    hint: str = ""
    mode: Mode | None = None
    model: str = ""
    body: str = ""
    problem: str = ""


class FileCommands:
    """The commands of a person in `home`, and of workspaces."""

    def __init__(self, home: str, trust: TrustStore, control: SessionControl, submit: Do) -> None:
        self._home = home
        self._trust = trust
        self._control = control
        self._submit = submit

    def specs(self, workspace: str) -> Sequence[OwnCommand]:
        return [
            OwnCommand(
                file.name,
                file.hint,
                f"Left out: {file.path}: {file.problem}" if file.problem else f"{file.description} ({file.path})",
                file.path,
            )
            for file in self._files(workspace)
        ]

    async def run(self, name: str, args: str, context: CommandContext) -> CommandOutput | None:
        files = await asyncio.to_thread(lambda: list(self._files(context.workspace)))
        file = next((file for file in files if file.name == name), None)
        if file is None:
            return None
        if file.problem:
            return misuse(f"{name} cannot be used: {file.path}: {file.problem}.")
        text = _expanded(file.body, args)
        if text is None:
            return misuse(f"{name} with these arguments is longer than {MESSAGE_LIMIT:,} characters.")
        give_back: Callable[[], None] = lambda: None  # noqa: E731
        try:
            if file.mode is not None or file.model:
                give_back = self._control.borrow(context.session, file.mode, file.model)
            await self._submit(SendMessage(context.session, scrub_surrogates(text)))
        except CodeWhaleError as error:
            give_back()
            return CommandOutput(f"{name} was not sent: {error}", ok=False)
        return CommandOutput(f"Sent {file.path}.", turn=True)

    def _files(self, workspace: str) -> Iterator[CommandFile]:
        """All of them, those that can be used and the workspace's first."""
        root = os.path.realpath(workspace)
        project = os.path.join(root, COMMAND_FOLDER)
        files = [
            self._file(path, f"{COMMAND_FOLDER}/{os.path.basename(path)}", root) for path in command_files(project)
        ]
        own = os.path.join(self._home, "commands")
        files += [self._file(path, path, "") for path in command_files(own)] if own != project else []
        return iter(sorted(files, key=lambda file: bool(file.problem)))

    def _file(self, path: str, shown: str, root: str) -> CommandFile:
        name, shown = "/" + os.path.basename(path).removesuffix(".md"), one_line(shown, 200)
        if not _NAME.fullmatch(name[1:]):
            return CommandFile(one_line(name, 60), shown, problem="the name must be at most 40 letters or digits")
        try:
            return _read_command(name, shown, steering_bytes(path, root, self._trust.holds))
        except (ValueError, ConfigError) as error:
            return CommandFile(name, shown, problem=str(error))


def _expanded(body: str, args: str) -> str | None:
    """With arguments in their places, or behind it where it has none; None for what is too long."""
    try:
        words = shlex.split(args)
    except ValueError:
        words = args.split()
    left = MESSAGE_LIMIT - len(body)

    def put(place: re.Match[str]) -> str:
        nonlocal left
        name = place[1]
        text = args if name == "ARGUMENTS" else words[int(name) - 1] if int(name) <= len(words) else ""
        left -= len(text)
        return text if left >= 0 else ""

    text, places = _PLACE.subn(put, body)
    if not places and args:
        text, left = f"{text}\n\n{args}", left - len(args)
    return text if left >= 0 else None


def _read_command(name: str, shown: str, data: bytes) -> CommandFile:
    """What a file says. Raises ValueError with what is wrong with it."""
    members, body = head_and_body(data)
    hint = members.get("argument-hint", "")
    hint = f"[{'] ['.join(map(str, hint))}]" if isinstance(hint, list) else hint
    fields = {"description": members.get("description", ""), "argument-hint": hint, "model": members.get("model", "")}
    if wrong := [field for field, value in fields.items() if not isinstance(value, str)]:
        raise ValueError(f"{wrong[0]} is not a text")
    mode = members.get("mode")
    if mode is not None and mode not in list(_MODES):
        raise ValueError(f"mode is {one_line(str(mode), 40)!r}, not {' or '.join(_MODES)}")
    if len(fields["model"].split()) > 2:
        raise ValueError("model is not MODEL or PROVIDER MODEL")
    first = next(line.strip("# ") for line in body.splitlines() if line.strip())
    description = one_line(fields["description"].strip() or first, 120)
    return CommandFile(
        name, shown, description, one_line(fields["argument-hint"].strip(), 60),
        None if mode is None else Mode(mode), " ".join(fields["model"].split()), body.strip(),
    )  # fmt: skip
