"""What a session has done to a workspace, turn by turn, and what of it was taken back: a fold over the history."""

from collections.abc import Sequence

from msgspec import Struct

from codewhale.workspace.snapshots import Entry


class Turn(Struct, frozen=True):
    """What a session's calls of one turn changed: from entry `since` on, at `at` (seconds since the epoch), by these
    tools, in these files. `number` is 0 for the last undo, which can be taken back like a turn."""

    since: int
    number: int
    at: float
    tools: tuple[str, ...]
    paths: tuple[str, ...]


def live_turns(entries: Sequence[Entry], session: str) -> list[Turn]:
    """The turns that changed files and still stand, newest first."""
    live: list[Turn] = []
    earlier: dict[int, list[Turn]] = {}
    for entry in entries:
        if entry.session != session:
            continue
        earlier[entry.number] = list(live)
        if entry.kind == "undo":
            live = earlier.get(entry.since, [turn for turn in live if turn.since < entry.since])
        elif live and live[-1].number == entry.turn:
            live[-1] = _joined(live[-1], entry)
        else:
            live.append(_turn(entry, entry.turn))
    return live[::-1]


def last_undo(entries: Sequence[Entry], session: str) -> Turn | None:
    """The undo that was the last thing the session did to the workspace."""
    own = [entry for entry in entries if entry.session == session]
    return _turn(own[-1], 0) if own and own[-1].kind == "undo" else None


def _turn(entry: Entry, number: int) -> Turn:
    return Turn(entry.number, number, entry.at, (entry.tool,), tuple(change.path for change in entry.changes))


def _joined(turn: Turn, entry: Entry) -> Turn:
    tools = (*turn.tools, *(() if entry.tool in turn.tools else (entry.tool,)))
    paths = {**dict.fromkeys(turn.paths), **dict.fromkeys(change.path for change in entry.changes)}
    return Turn(turn.since, turn.number, entry.at, tools, tuple(paths))
