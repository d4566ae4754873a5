"""/undo, /restore and /rewind: what the agent did to files is taken back, what was said since a message, or both. The
log keeps all of it, and the last one can be undone."""

from collections.abc import Callable, Iterator

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib import failpoints
from codewhale.lib.text import counted, one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import ContextAppended, Event, FileChanged
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.ports import SessionControl
from codewhale.protocol.views import FormerMessage
from codewhale.workspace.files import Workspaces
from codewhale.workspace.patching import unified_diff
from codewhale.workspace.undo import Undo, UndoPlan, UndoResult, UndoTurn
from codewhale.workspace.undo.journal import SnapshotError
from codewhale.workspace.undo.render import MOST_LISTED, done_lines, plan_lines, turn_line

USAGE = "Use /undo [N] [preview|yes]: the last N turns; or /restore [N|back] [preview|yes]."
DIFF_ROOM = 16_384
REWIND = "Use /rewind, /rewind N [both|conversation|files] [preview|yes], or /rewind back."
_KEPT_FILES = "The conversation went back; files changed since then stay as they are. Read them again."
_PARTS = ("both", "conversation", "files")
_BUSY = "A turn is running; stop it or wait until it ends."
_WORDS = ("preview", "yes")


class UndoCommands:
    """/undo, /restore, /rewind."""

    def __init__(
        self, undo: Undo, files: Workspaces, control: SessionControl, tell: Callable[[str, Event], None]
    ) -> None:
        self._undo = undo
        self._files = files
        self._control = control
        self._tell = tell
        self._seen: dict[str, tuple[str, UndoPlan]] = {}

    @command("/undo", "[N] [preview|yes]")
    async def undo(self, args: str, context: CommandContext) -> CommandOutput:
        """Undo the file changes of the last turn (or the last N); other changes stay."""
        place, word = _split(args)
        if place is None or place == "back":
            return misuse(USAGE)
        return await self._go(place or "1", word, context)

    @command("/restore", "[N|back] [preview|yes]")
    async def restore(self, args: str, context: CommandContext) -> CommandOutput:
        """List the turns that changed files; undo all from the Nth on; back redoes the last undo."""
        place, word = _split(args)
        if place is None:
            return misuse(USAGE)
        return await self._go(place, word, context)

    @command("/rewind", "[N|back] [both|conversation|files] [preview|yes]")
    async def rewind(self, args: str, context: CommandContext) -> CommandOutput:
        """Go back to before a former message: the conversation, the files, or both; back undoes it."""
        words = args.split()
        word = words.pop() if words and words[-1] in _WORDS else ""
        part = words.pop() if len(words) > 1 and words[-1] in _PARTS else "both"
        place = words.pop() if words else ""
        if words or not (place in ("", "back") or (place.isascii() and place.isdigit() and len(place) < 7)):
            return CommandOutput(REWIND, ok=False)
        status = self._control.status(context.session)
        former = {row.turn: row for row in self._control.former(context.session)}
        if not place:
            rows = (f"{row.turn:>3}  {one_line(row.text)}" for row in reversed(former.values()))
            return CommandOutput("\n".join(rows) or "No messages yet.")
        if status.busy and word != "preview":
            return CommandOutput(_BUSY, ok=False)
        try:
            if place == "back":
                return await self._forward(context)
            if int(place) not in former:
                return CommandOutput(
                    f"No message of this conversation has number {place}. /rewind lists them.", ok=False
                )
            if word == "preview" or (status.authority is Authority.PERSON and word != "yes"):
                gone = [f"goes: {one_line(row.text)}" for turn, row in former.items() if turn >= int(place)]
                files = await self._since(int(place), context) if part != "conversation" else None
                shown = [] if part == "files" else gone
                shown += ["No files change."] if files is None else [await self._shown(files)]
                shown += () if part == "conversation" else self._beyond(context.session)
                return CommandOutput("\n".join((*shown, f"Nothing has changed yet. Use /rewind {place} {part} yes.")))
            return await self._rewind(former[int(place)], part, context)
        except (SnapshotError, SessionError) as error:
            return CommandOutput(f"Could not go back: {error}.", ok=False)

    async def _since(self, turn: int, context: CommandContext) -> UndoPlan | None:
        """What taking back all that turn and later ones did to files comes to; None where they did nothing."""
        since = await self._undo.since_turn(context.session, context.workspace, turn)
        return None if since is None else await self._undo.plan(context.session, context.workspace, since)

    async def _rewind(self, former: FormerMessage, part: str, context: CommandContext) -> CommandOutput:
        """Files first: cut short, the conversation still tells what was asked, and the same rewind ends it."""
        session, lines = context.session, list[str]()
        plan = await self._since(former.turn, context) if part != "conversation" else None
        if plan is not None and (plan.files or plan.refused):
            done = await self._undo.carry_out(plan)
            lines = self._record(context, done, said=part == "files")
        if part == "files":
            text = "\n".join([*lines, *self._beyond(session)]) if lines else "No files changed since."
            return CommandOutput(text, ok=bool(lines))
        failpoints.hit("rewind.files_back")
        self._control.rewind(session, former.turn, bool(lines))
        if part == "conversation" and await self._changed_since(former.turn, context):
            self._tell(session, ContextAppended("rewind", f"<context>\nrewind: {_KEPT_FILES}\n</context>"))
        text = f"Went back to before: {one_line(former.text)}"
        lines += self._beyond(session) if part == "both" else ()
        return CommandOutput("\n".join((text, *lines, "/rewind back undoes this.")), draft=former.text)

    async def _changed_since(self, turn: int, context: CommandContext) -> bool:
        try:
            return await self._undo.since_turn(context.session, context.workspace, turn) is not None
        except SnapshotError:
            return True  # nobody can say

    async def _forward(self, context: CommandContext) -> CommandOutput:
        """Undo the last rewind, with what it did to files."""
        rewound = self._control.undo_rewind(context.session)
        if rewound is None:
            return CommandOutput("Nothing to undo: no rewind since the last message.", ok=False)
        lines = ["The conversation is as it was before the rewind."]
        last = await self._undo.last_undo(context.session, context.workspace) if rewound.files else None
        if last is not None:
            done = await self._undo.carry_out(await self._undo.plan(context.session, context.workspace, last.since))
            lines += self._record(context, done, said=False)[1:]
        return CommandOutput("\n".join(lines))

    async def _go(self, place: str, word: str, context: CommandContext) -> CommandOutput:
        status = self._control.status(context.session)
        if status.busy and place and word != "preview":
            return CommandOutput(_BUSY, ok=False)
        try:
            turns = await self._undo.turns(context.session, context.workspace)
            last = await self._undo.last_undo(context.session, context.workspace)
            if not place:
                return CommandOutput(_list(turns, last))
            since = _since(place, turns, last)
            if isinstance(since, str):
                return CommandOutput(since, ok=False)
            return await self._take_back(place, word, since, context, status.authority is Authority.PERSON)
        except SnapshotError as error:
            return CommandOutput(f"Undo is not available here: {error}.", ok=False)

    async def _take_back(
        self, place: str, word: str, since: int, context: CommandContext, person: bool
    ) -> CommandOutput:
        kept, plan = self._seen.pop(context.session, ("", None))
        if plan is None or word != "yes" or kept != place or plan.since != since:
            plan = await self._undo.plan(context.session, context.workspace, since)
        if not plan.files:
            return CommandOutput("\n".join(("Nothing to undo.", *plan_lines(plan))), ok=not plan.refused)
        if word == "preview" or (person and word != "yes"):
            self._seen[context.session] = (place, plan)
            verb = "/restore" if place == "back" else "/undo"
            return CommandOutput(
                f"{await self._shown(plan)}\nNothing has changed yet. Use {verb} {place} yes to do it."
            )
        done = await self._undo.carry_out(plan)
        text = "\n".join([*self._record(context, done), *self._beyond(context.session)])
        again = "/restore back redoes it." if done.changes else ""
        return CommandOutput(f"{text}\n{again}".strip(), ok=bool(done.changes))

    async def _shown(self, plan: UndoPlan) -> str:
        """The files of a plan and as much of their differences as fits."""
        lines, room = plan_lines(plan), DIFF_ROOM
        for path, now, then in await self._undo.contents(plan):
            diff = unified_diff(path, now, then, room)
            room -= len(diff)
            if room < 0:
                lines.append("(the other differences are not shown)")
                break
            if diff:
                lines += ["", diff.rstrip("\n")]
        return "\n".join(lines)

    def _beyond(self, session: str) -> Iterator[str]:
        if folders := self._control.folders(session):
            yield f"Changes in added folders stay: {', '.join(map(one_line, folders))}."
        if jobs := self._control.status(session).jobs:
            yield f"{counted(jobs, 'background job')} may still change files; /jobs lists them."

    def _record(self, context: CommandContext, done: UndoResult, said: bool = True) -> list[str]:
        """Let the session's log know, and the model where the conversation goes on (where that went back as well, it
        knows nothing of later contents; of a file that is gone there is nothing to read again). In lines."""
        session, files = context.session, self._files.at(context.workspace)
        files.forget(session, (change.path for change in done.changes if change.after is None or not said))
        for change in done.changes:
            self._tell(session, FileChanged("undo", change))
        if done.changes and said:
            paths = ", ".join(one_line(change.path, 200).replace("<", "(") for change in done.changes[:MOST_LISTED])
            more = len(done.changes) - MOST_LISTED
            rest = f" and {more} more" if more > 0 else ""
            text = f"The user undid file changes that you made: {paths}{rest}. Read them again."
            self._tell(session, ContextAppended("undo", f"<context>\nundo: {text}\n</context>"))
        return [_summary(done), *done_lines(done.changes, done.refused)]


def _split(args: str) -> tuple[str | None, str]:
    """(which turn, or None for nonsense; preview, yes or "")."""
    words = args.split()
    word = words.pop() if words and words[-1] in _WORDS else ""
    place = words.pop() if words else ""
    if words or not (place in ("", "back") or (place.isascii() and place.isdigit() and 0 < len(place) < 4)):
        return None, ""
    return place, word


def _since(place: str, turns: tuple[UndoTurn, ...], last: UndoTurn | None) -> int | str:
    """The entry from which on all is taken back, or why there is none."""
    if place == "back":
        return last.since if last is not None else "Nothing to redo: the last action here was not an undo."
    if not turns:
        return "No turn of this session has file changes left to undo."
    number = int(place)
    if not 0 < number <= len(turns):
        return f"{len(turns)} turns with changes can be undone: give 1 to {len(turns)}. /restore lists them."
    return turns[number - 1].since


def _list(turns: tuple[UndoTurn, ...], last: UndoTurn | None) -> str:
    lines = [f"{number:>3}  {turn_line(turn)}" for number, turn in enumerate(turns[:MOST_LISTED], 1)]
    if last is not None:
        lines.append("back  brings back what was undone last")
    return "\n".join(lines) or "No turn of this session has changed a file."


def _summary(done: UndoResult) -> str:
    files = "1 file" if len(done.changes) == 1 else f"{len(done.changes)} files"
    return f"Undone in {files}." if done.changes else "Nothing was undone."
