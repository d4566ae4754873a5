"""Tool calls in words: what is done, to what, and what came of it. Neighbouring reads and searches are told as one."""

import re
from collections.abc import Sequence

from codewhale.display.text import Span, clean, one_row
from codewhale.display.transcript.blocks import ASKING, DONE, FAILED, RUNNING, WAITING, CallCard
from codewhale.display.words import Words
from codewhale.protocol.blocks import DiffBlock, TerminalBlock

# The glyph of each state; a running one turns.
GLYPHS = {WAITING: ("◌", "muted"), ASKING: ("?", "warning"), DONE: ("●", "success"), FAILED: ("✗", "error")}
_SPINNER = "◐◓◑◒"
# What each tool does; one that is not listed is called by its name.
VERBS = {
    "edit": ("apply_patch", "edit_file", "write_file", "fim_edit"),
    "run": (
        "exec_shell", "task_gate_run", "task_shell_start", "git_diff", "git_log", "git_show", "git_status", "git_blame",
        "diagnostics", "!",
    ),
    "tests": ("run_tests",),
    "checks": ("run_verifiers",),
    "wait": ("exec_shell_wait", "task_shell_wait"),
    "type": ("exec_shell_interact",),
    "end": ("exec_shell_cancel",),
    "read": ("read_file",),
    "output": ("retrieve_tool_result",),
    "list": ("list_dir",),
    "search": ("grep_files", "codebase_search", "code_symbols"),
    "find": ("file_search",),
    "history": ("code_history",),
    "map": ("project_map",),
    "plan": ("checklist_write", "checklist_add", "checklist_update", "checklist_list", "update_plan"),
    "ask": ("request_user_input",),
    "tools": ("tool_search_tool_bm25", "tool_search_tool_regex"),
    "skill": ("load_skill",),
    "note": ("note",),
    "revert": ("revert_turn",),
    "validate": ("validate_data",),
    "open_agent": ("agent_open", "tool_agent"),
    "see_agent": ("agent_eval",),
    "close_agent": ("agent_close",),
}  # fmt: skip
_VERB_OF = {tool: verb for verb, tools in VERBS.items() for tool in tools}
# Calls whose subject is the command that their display names.
_COMMANDED = frozenset({"tests", "wait", "type", "run"})
_QUOTED = frozenset({"search", "find", "tools"})
# So many of a kind are named in a group; more are counted.
_NAMED = {"read": 4, "list": 3, "search": 2, "find": 2}
_TALLY = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped)\b")
_PROBLEMS = re.compile(r"(?:FAILED|ERROR|FAIL|--- FAIL|not ok|E  ) |error(?:\[\w+\])?:|FAIL: |test .* FAILED$")


class Spoken:
    """Says calls in one language."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def verb(self, card: CallCard) -> str:
        """What is done: as a wish while it has not begun (or never did), in the present, in the past."""
        verb = _VERB_OF.get(card.name, "call")
        if verb == "edit" and any(_creates(display) for display in card.display):
            verb = "create"
        elif verb == "run" and card.background:
            verb = "start"
        begun = card.started or card.status == DONE or card.display
        form = 1 if card.status == RUNNING else 2 if begun and card.status in (DONE, FAILED) else 0
        return self._words(f"calls.{verb}").split("|")[form]

    def subject(self, card: CallCard) -> str:
        """What a call is about, on one line."""
        verb = _VERB_OF.get(card.name, "call")
        if verb == "call":
            return one_row(f"{card.name} {card.subject}".rstrip())
        if verb == "edit" and len({display.path for display in card.display if isinstance(display, DiffBlock)}) > 1:
            return self._words("calls.files", n=len(card.display))
        if verb == "edit" and card.display and isinstance(card.display[0], DiffBlock):
            return one_row(card.display[0].path)
        if verb in _COMMANDED:
            command = next((display.command for display in card.display if isinstance(display, TerminalBlock)), "")
            return one_row(" ".join(command.split()) or card.subject)
        return (
            self._quoted(card) if verb in _QUOTED else "" if verb in ("plan", "map", "ask") else one_row(card.subject)
        )

    def _quoted(self, card: CallCard) -> str:
        text = one_row(card.subject)
        where = f" {one_row(card.where)}" if card.where not in ("", ".") else ""
        return f'"{text}"{where}' if text else where

    def outcome(self, card: CallCard) -> list[Span]:
        """What came of a call, piece by piece."""
        diffs = [counts(display.diff) for display in card.display if isinstance(display, DiffBlock)]
        if diffs:
            added, removed = (sum(column) for column in zip(*diffs, strict=True))
            return [(f"+{added}", "added"), (f"-{removed}", "removed")]
        tone = "error" if card.status == FAILED else "muted"
        if tally := tally_of(card):
            return [(tally, tone)]
        code = next((display.exit_code for display in card.display if isinstance(display, TerminalBlock)), None)
        if card.status in (DONE, FAILED) and code:
            return [(self._words("calls.exit", code=code), "error")]
        if card.count[0]:
            return [(self._counted(*card.count), "muted")]
        return []

    def why(self, card: CallCard) -> str:
        """Why a call failed, for a person: never what was written for the model to act on."""
        if card.answer == "denied":
            return ""
        said = (
            self._words(f"calls.error_{card.error}") if card.error in _ERRORS else one_row(card.error.replace("_", " "))
        )
        return card.why or said

    def _counted(self, unit: str, count: int) -> str:
        return self._words(f"calls.{unit}" if count or unit not in ("hits", "matching") else "calls.none", n=count)

    # ------------------------------------------------------------------ a group

    def explored(self, cards: Sequence[CallCard]) -> list[Span]:
        """A group of reads and searches in a few words, the pieces parted by dots."""
        kinds: dict[str, list[CallCard]] = {}
        for card in cards:
            kinds.setdefault(_VERB_OF[card.name], []).append(card)
        pieces = [self._kind(verb, of_kind) for verb, of_kind in kinds.items()]
        pieces = [text[:1].lower() + text[1:] if at else text for at, text in enumerate(pieces)]
        return [
            span for at, text in enumerate(pieces) for span in ([(" · ", "muted")] if at else []) + [(text, "text")]
        ]

    def _kind(self, verb: str, cards: Sequence[CallCard]) -> str:
        words = self._words
        hits = sum(card.count[1] for card in cards)
        unit = next((card.count[0] for card in cards if card.count[0]), "")
        if verb in ("search", "find"):
            named = list(dict.fromkeys(self._quoted(card) for card in cards))
            what = ", ".join(named) if len(named) <= _NAMED[verb] else words("calls.patterns", n=len(named))
            came = self._counted(unit, hits) if unit else ""
        else:
            named = list(dict.fromkeys(one_row(card.subject) or "." for card in cards))
            what = ", ".join(named) if len(named) <= _NAMED[verb] else words(f"calls.{verb}s", n=len(named))
            came = self._counted(unit, hits) if unit and len(cards) == 1 else ""
        return f"{words(f'calls.{verb}').split('|')[2]} {what}{f' ({came})' if came else ''}"


_ERRORS = frozenset(
    {"interrupted", "lost", "invalid_input", "missing_field", "path_escape", "execution_failed", "timeout",
     "not_available", "permission_denied"}
)  # fmt: skip


def call_text(words: Words, card: CallCard) -> str:
    """A call on one line: what is done, and to what."""
    spoken = Spoken(words)
    return f"{spoken.verb(card)} {spoken.subject(card)}".rstrip()


def glyph_of(status: str, now: float) -> Span:
    """The sign of a state, and its colour."""
    return (_SPINNER[int(now) % len(_SPINNER)], "accent") if status == RUNNING else GLYPHS[status]


def tally_of(card: CallCard) -> str:
    """How many tests passed and failed, what went wrong first: as the test runner counted, or as the last line of a
    command says that looks like one's."""
    line = card.summary.partition(";")[0]
    if not line and card.name in VERBS["run"]:
        last = next((display.output for display in card.display if isinstance(display, TerminalBlock)), "")
        last = last.partition("\nSTDERR:\n")[0].rstrip()[-300:]  # warnings stand behind it
        line = clean(last.rpartition("\n")[2]).strip("= ").rpartition(" in ")[0]
        if not _TALLY.search(line):
            return ""
    parts = [part.strip() for part in line.split(",")]
    return one_row(", ".join(sorted(parts, key=lambda part: " passed" in part or " skipped" in part)))


def problems_in(output: str) -> list[str]:
    """The lines that name what failed, of what a command printed."""
    return [line for line in output.split("\n") if _PROBLEMS.match(line)]


def counts(diff: str) -> tuple[int, int]:
    """How many lines a diff adds and removes."""
    whole = "\n" + diff
    return whole.count("\n+") - whole.count("\n+++ "), whole.count("\n-") - whole.count("\n--- ")


def _creates(display: object) -> bool:
    return isinstance(display, DiffBlock) and display.diff.startswith("--- /dev/null")
