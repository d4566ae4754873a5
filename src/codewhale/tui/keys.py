"""The one table of what can be done by key: each action's id, its keys and where it holds. A panel takes its rows as
Textual bindings; `[tui.keys]` gives an id other keys."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.protocol.errors import ConfigError

if TYPE_CHECKING:
    from textual.binding import Binding


# How keys are written where that is not their name.
_SHOWN = {
    "slash": "/",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "plus": "+",
    "minus": "-",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "question_mark": "?",
    "right_square_bracket": "]",
}
# Former ids, for settings that name them.
_FORMER = MappingProxyType({"composer.complete_or_mode": "composer.complete"})
# The keys that write nothing, but those with ctrl, alt and the like and f1 to f24.
_NAMED = frozenset("enter escape tab up down left right home end pageup pagedown insert delete backspace".split())
# Where the composer stands below: what writes a character goes there.
_WRITES = frozenset({"app", "composer", "queue", "transcript", "approval", "question"})


class Action(Struct, frozen=True):
    """A row: `id` is "panel.name" and runs `action_name` of that panel, or what it `does`; its words stand under
    "keys.<id>". `keys` are separated by commas. `first` ones are tried before the focused widget sees the key."""

    id: str
    keys: str
    first: bool = False
    does: str = ""

    @property
    def panel(self) -> str:
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]


# The panels whose rows hold at the same time: no two rows of one group may share a key.
TOGETHER: tuple[tuple[str, ...], ...] = (
    ("app", "composer"),
    ("app", "queue"),
    ("app", "transcript"),
    ("app", "search"),
    ("app", "approval"),
    ("app", "question"),
    ("chooser", "memory"),
    ("jobs",),
    ("undo",),
    ("confirm",),
    ("console",),
    ("form",),
    ("pager", "context"),
)

ACTIONS: tuple[Action, ...] = (
    # ---------------------------------------------------------------- everywhere
    Action("app.interrupt", "ctrl+c", first=True),
    Action("app.leave", "ctrl+d", first=True),
    Action("app.palette", "ctrl+k", first=True, does="open_screen('palette')"),
    Action("app.sessions", "alt+s", first=True, does="open_screen('sessions')"),
    Action("app.models", "alt+m", first=True, does="open_screen('models')"),
    Action("app.jobs", "alt+j", first=True, does="open_screen('jobs')"),
    Action("app.agents", "alt+g", first=True, does="open_screen('agents')"),
    Action("app.tasks", "alt+k", first=True, does="open_screen('tasks')"),
    Action("app.answer", "alt+y", first=True),
    Action("app.help", "f1", first=True, does="open_screen('help')"),
    Action("app.keys", "f2", first=True, does="open_screen('keys')"),
    Action("app.theme", "f3", first=True),
    Action("app.mouse", "f4", first=True),
    Action("app.ask_again", "f6", first=True),
    Action("app.take_fact", "f7", first=True, does="fact('take')"),
    Action("app.change_fact", "f8", first=True, does="fact('change')"),
    Action("app.drop_fact", "f12", first=True, does="fact('drop')"),
    Action("app.redraw", "ctrl+l", first=True),
    Action("app.suspend", "ctrl+z", first=True),
    # The next ones are the transcript's; they hold wherever the focus is.
    Action("app.pager", "ctrl+o", first=True, does="reading('pager')"),
    Action("app.search", "ctrl+f", first=True, does="transcript('find')"),
    Action("app.fold_all", "ctrl+p", first=True, does="transcript('fold_all')"),
    Action("app.focus_transcript", "alt+t", first=True),
    Action("app.copy_answer", "alt+c", first=True, does="transcript('copy_answer')"),
    Action("app.copy_code", "alt+b", first=True, does="transcript('copy_code')"),
    Action("app.open_last", "alt+e", first=True, does="transcript('open_last')"),
    Action("app.page_up", "pageup", first=True, does="reading('page_up')"),
    Action("app.page_down", "pagedown", first=True, does="reading('page_down')"),
    Action("app.turn_up", "alt+up", first=True, does="transcript('turn_up')"),
    Action("app.turn_down", "alt+down", first=True, does="transcript('turn_down')"),
    Action("app.top", "ctrl+home", first=True, does="transcript('top')"),
    Action("app.bottom", "ctrl+end", first=True, does="transcript('bottom')"),
    # ---------------------------------------------------------------- the composer
    Action("composer.send", "enter"),
    Action("composer.newline", "ctrl+j,alt+enter,shift+enter"),
    Action("composer.steer", "ctrl+t,ctrl+enter"),
    Action("composer.escape", "escape"),
    Action("composer.complete", "tab"),
    Action("composer.mode", "shift+tab"),
    Action("composer.effort", "alt+i"),
    Action("composer.edit_outside", "ctrl+g"),
    Action("composer.stash", "ctrl+s"),
    Action("composer.search_history", "ctrl+r"),
    Action("composer.up", "up"),
    Action("composer.down", "down"),
    Action("composer.edit_queue", "alt+q"),
    Action("composer.attach", "alt+v"),
    # ---------------------------------------------------------------- what waits, while it has the focus
    Action("queue.previous", "up"),
    Action("queue.next", "down"),
    Action("queue.edit", "enter"),
    Action("queue.drop", "delete"),
    Action("queue.steer", "ctrl+t"),
    Action("queue.close", "escape"),
    # ---------------------------------------------------------------- the transcript, while it has the focus
    Action("transcript.next", "down"),
    Action("transcript.previous", "up"),
    Action("transcript.fold", "enter"),
    Action("transcript.copy", "ctrl+y"),
    Action("transcript.copy_block", "ctrl+x"),
    Action("transcript.open", "ctrl+e"),
    Action("transcript.find_next", "ctrl+n"),
    Action("transcript.find_previous", "alt+n"),
    Action("transcript.first", "home"),
    Action("transcript.last", "end"),
    Action("transcript.back", "escape"),
    # ---------------------------------------------------------------- its search line
    Action("search.accept", "enter"),
    Action("search.later", "down"),
    Action("search.earlier", "up"),
    Action("search.close", "escape"),
    # ---------------------------------------------------------------- the approval card
    Action("approval.previous", "up"),
    Action("approval.next", "down"),
    Action("approval.choose", "enter"),
    Action("approval.cancel", "escape"),
    Action("approval.leave", "tab,shift+tab"),
    # ---------------------------------------------------------------- the question card
    Action("question.previous", "up"),
    Action("question.next", "down"),
    Action("question.choose", "enter"),
    Action("question.cancel", "escape"),
    Action("question.back", "left"),
    Action("question.leave", "tab,shift+tab"),
    # ---------------------------------------------------------------- lists to choose from
    Action("chooser.previous", "up,ctrl+p"),
    Action("chooser.next", "down,ctrl+n"),
    Action("chooser.page_up", "pageup"),
    Action("chooser.page_down", "pagedown"),
    Action("chooser.choose", "enter"),
    Action("chooser.close", "escape,ctrl+c"),
    Action("chooser.reload", "f5"),
    Action("chooser.preview_up", "shift+up,ctrl+pageup"),
    Action("chooser.preview_down", "shift+down,ctrl+pagedown"),
    Action("chooser.other", "alt+f"),
    # ---------------------------------------------------------------- what is remembered
    Action("memory.take", "f7"),
    Action("memory.drop", "f12"),
    Action("memory.restore", "f9"),
    # ---------------------------------------------------------------- the context
    Action("context.layers", "enter"),
    # ---------------------------------------------------------------- the jobs
    Action("jobs.previous", "up,k"),
    Action("jobs.next", "down,j"),
    Action("jobs.stop", "x"),
    Action("jobs.output", "enter"),
    Action("jobs.close", "escape,ctrl+c,q"),
    Action("jobs.write", "i"),
    Action("jobs.end_input", "alt+d"),
    Action("jobs.page_up", "pageup"),
    Action("jobs.page_down", "pagedown"),
    Action("jobs.last", "end,G"),
    # ---------------------------------------------------------------- what undo would do
    Action("undo.accept", "ctrl+y"),
    Action("undo.close", "escape,ctrl+c"),
    Action("undo.more", "right,plus"),
    Action("undo.fewer", "left,minus"),
    Action("undo.up", "up,k"),
    Action("undo.down", "down,j"),
    Action("undo.page_up", "pageup"),
    Action("undo.page_down", "pagedown,space"),
    # ---------------------------------------------------------------- a question with two answers
    Action("confirm.previous", "up"),
    Action("confirm.next", "down"),
    Action("confirm.choose", "enter"),
    Action("confirm.close", "escape,ctrl+c"),
    # ---------------------------------------------------------------- a command that is typed into
    Action("console.interrupt", "ctrl+c"),
    Action("console.end", "escape"),
    Action("console.close", "ctrl+right_square_bracket"),
    # ---------------------------------------------------------------- fields to fill in
    Action("form.next", "tab,down"),
    Action("form.previous", "shift+tab,up"),
    Action("form.accept", "enter"),
    Action("form.close", "escape,ctrl+c"),
    # ---------------------------------------------------------------- long texts
    Action("pager.up", "up,k"),
    Action("pager.down", "down,j"),
    Action("pager.page_up", "pageup,b"),
    Action("pager.page_down", "pagedown,space"),
    Action("pager.first", "home,g"),
    Action("pager.last", "end,G"),
    Action("pager.find", "slash"),
    Action("pager.find_next", "n"),
    Action("pager.find_previous", "N"),
    Action("pager.copy", "y"),
    Action("pager.page_outside", "v"),
    Action("pager.edit", "e"),
    Action("pager.close", "escape,q,ctrl+c"),
)


def bindings(panel: str) -> "list[Binding | tuple[str, str] | tuple[str, str, str]]":
    """The rows of a panel as Textual bindings, for its BINDINGS."""
    from textual.binding import Binding

    return [
        Binding(row.keys, row.does or row.name, row.id, show=False, priority=row.first, id=row.id)
        for row in ACTIONS
        if row.panel == panel
    ]


def types(key: str) -> bool:
    """Whether a key writes a character."""
    last = key.removeprefix("shift+")
    named = last in _NAMED or (last[:1] == "f" and last[1:].isdecimal())
    return "+" not in last.rstrip("+") and not named


def keys_of(row: Action, changed: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of a row with the person's own changes."""
    return tuple(key.strip() for key in changed.get(row.id, row.keys).split(",") if key.strip())


def named_today(changed: Mapping[str, str]) -> dict[str, str]:
    """A person's own keys under the ids of today."""
    return {_FORMER[name]: keys for name, keys in changed.items() if name in _FORMER} | {
        name: keys for name, keys in changed.items() if name not in _FORMER
    }


def check_keys(changed: Mapping[str, str]) -> None:
    """Whether `[tui.keys]` can be used. Raises ConfigError for an id that is not there, no key, or one that does two
    things at the same time."""
    rows = {row.id: row for row in ACTIONS}
    for name in changed:
        if name not in rows:
            import difflib

            near = difflib.get_close_matches(name, rows, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"tui.keys: there is no action {one_line(name, 60)!r}{hint}")
        letter = next((key for key in keys_of(rows[name], changed) if types(key)), "")
        if letter and rows[name].panel in _WRITES:
            raise ConfigError(
                f"tui.keys: {name} cannot be {one_line(letter, 40)!r}, which writes a character: those go to the "
                "composer; take one with ctrl or alt, or a function key"
            )
        if not keys_of(rows[name], changed):
            raise ConfigError(f"tui.keys: {name} has no key; leave the line out to keep {rows[name].keys!r}")
    if clash := clashes(changed):
        key, one, other = clash[0]
        raise ConfigError(
            f"tui.keys: {one_line(key, 40)} would do both {one} and {other}; give one of them another key"
        )


def clashes(changed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Keys that two rows share which hold at the same time: (key, id, id)."""
    found = []
    for panels in TOGETHER:
        owner: dict[str, str] = {}
        taken = ((key, row.id) for row in ACTIONS if row.panel in panels for key in keys_of(row, changed))
        found += [(key, owner[key], action) for key, action in taken if owner.setdefault(key, action) != action]
    return found


def key_shown(key: str) -> str:
    """A key as people write it."""
    *held, last = key.split("+") if key != "+" else ["plus"]
    return "+".join([*held, _SHOWN.get(last, last)])


def first_key(action: str, changed: Mapping[str, str]) -> str:
    """The first key of a row, as it is shown."""
    row = next(row for row in ACTIONS if row.id == action)
    return key_shown(keys_of(row, changed)[0])
