"""The sessions there are, with how each one ends: go on with one, or with a copy of it."""

from collections.abc import Sequence
from typing import ClassVar

from codewhale.display.tones import Line, flat, safe_lines
from codewhale.protocol.ops import ListSessions
from codewhale.protocol.views import PreviewSession, SessionSummary
from codewhale.tui.screens.chooser import Chooser
from codewhale.tui.screens.outcomes import Resume
from codewhale.tui.screens.rowlist import Item

MOST_SESSIONS = 1000
PREVIEWED = 12
_SHOWN_CHARS = 4000
_MARKS = {"open": ("●", "success"), "damaged": ("!", "error")}


class SessionPicker(Chooser):
    """Sessions of this folder first, then the others."""

    PANEL = "sessions"
    PREVIEW = True
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.choose", "sessions.resume"),
        ("chooser.other", "sessions.fork"),
        ("chooser.preview_down", "sessions.preview"),
        ("chooser.close", "frame.close"),
    )

    async def rows(self) -> Sequence[Item] | None:
        """Every session, the latest first."""
        rows: Sequence[SessionSummary] | None = await self.ask(self.desk.query(ListSessions("")), "frame.loading")
        if rows is None:
            return None
        here = self.desk.workspace
        near = [row for row in rows if row.workspace == here][:MOST_SESSIONS]
        far = [row for row in rows if row.workspace != here][: MOST_SESSIONS - len(near)]
        return [self._item(row, "sessions.here") for row in near] + [
            self._item(row, "sessions.elsewhere") for row in far
        ]

    def _item(self, row: SessionSummary, group: str) -> Item:
        mark, tone = _MARKS.get(row.state, ("", "muted"))
        if row.id == self.desk.session:
            mark, tone = "›", "accent"
        said = self.words("sessions.row", n=row.turns, when=_when(row.updated), model=flat(row.model, 60))
        if group == "sessions.elsewhere":
            said = f"{said} · {flat(row.workspace)}"
        title = row.title or self.words("sessions.untitled")
        return Item(row.id, title, said, self.words(group), mark, tone, f"{row.id} {row.workspace}", row)

    async def preview(self, item: Item) -> Sequence[Line]:
        """Where it stands, and the last that was said."""
        row: SessionSummary = item.value
        lines: list[Line] = [
            ((flat(row.title) or self.words("sessions.untitled"), "bold text"),),
            ((f"{flat(row.id)} · {flat(row.workspace)}", "muted"),),
        ]
        if row.parent:
            lines.append(((self.words("sessions.forked", parent=flat(row.parent)), "muted"),))
        if row.id == self.desk.session:
            lines.append(((self.words("sessions.this"), "accent"),))
        elif row.state in _MARKS:
            lines.append(((self.words(f"sessions.{row.state}"), _MARKS[row.state][1]),))
        found = await self.ask(self.desk.query(PreviewSession(row.id, PREVIEWED)))
        if found is None:
            return lines
        for role, text in found.lines:
            tone = "user" if role == "user" else "accent"
            first, *rest = safe_lines(text[:_SHOWN_CHARS].strip())
            lines += [((f"{self._role(role)}  ", f"bold {tone}"), *first), *rest]
        if not found.lines:
            lines += [(("", "text"),), ((self.words("sessions.empty"), "muted"),)]
        return lines

    def _role(self, role: str) -> str:
        return self.words(f"sessions.role_{role}") if role in ("user", "assistant", "tool") else flat(role, 20)

    def chosen(self, item: Item) -> None:
        """Go on with it."""
        if item.value.state == "damaged":
            self.say(self.words("sessions.damaged"), "error")
        elif item.key == self.desk.session:
            self.dismiss(None)
        else:
            self.dismiss(Resume(item.key))

    def action_other(self) -> None:
        """Go on with a copy of it."""
        item = self.list.current
        if item is not None and item.value.state != "damaged":
            self.dismiss(Resume(item.key, fork=True))


def _when(updated: str) -> str:
    return flat(updated[:16].replace("T", " "), 20)
