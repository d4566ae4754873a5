"""What a compaction keeps word for word, read from the log: the developer's words, rules, plan, checklist, refusals,
questions and what is still open.

Everything is taken from the log itself, so a second compaction loses nothing that the first had kept.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from codewhale.lib.text import one_line
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallStarted,
    ContextAppended,
    Event,
    FileChanged,
    JobEnded,
    JobStarted,
    ListChanged,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    SessionResumed,
)
from codewhale.protocol.messages import Text
from codewhale.protocol.tools import Origin
from codewhale.session.rulelines import is_strict, rule_lines, within
from codewhale.session.state import stands_for

_CLOSING = re.compile(
    r"</(?=\s*(?:compacted|message|instructions|context|context_update|summary|result)\b)", re.IGNORECASE
)
_RULE_FILE = re.compile(
    r"(?i)(agents|claude|contributing|rules?|security|style|conventions?|guidelines?|readme|policy|codeowners|"
    r"editorconfig)[^\"/]*\""
)
_CHECKS = ("run_tests", "run_verifiers", "diagnostics")
_WORDS_OF_A_MESSAGE = 32_768
_READ_BYTES = 2_000_000


class Kept:
    """The sum of a log, as far as a compaction keeps it."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.words: list[str] = []
        self._told: dict[str, str] = {}
        self._lists: dict[str, ListChanged] = {}
        self._asked: dict[str, ApprovalAsked] = {}
        self._refused: list[str] = []
        self._questions: dict[str, QuestionAsked] = {}
        self._answers: dict[str, QuestionAnswered] = {}
        self._arguments: dict[str, str] = {}
        self._notes: list[str] = []
        self._results: list[tuple[bool, str, str]] = []
        self._changed: dict[str, int] = {}
        self._jobs: dict[str, JobStarted] = {}
        self._failed: dict[str, str] = {}
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        match event:
            case MessageAdded(message=message) if message.role == "user":
                self.words += [
                    part.text for part in message.parts if isinstance(part, Text) and part.source == "person"
                ]
            case MessageAdded(message=message):
                self._arguments.update((call.id, call.sent_arguments) for call in message.calls)
            case ContextAppended():
                self._told[event.kind] = event.text
            case ListChanged():
                self._lists[event.kind] = event
            case ApprovalAsked():
                self._asked[event.request_id] = event
            case ApprovalAnswered(allowed=False):
                self._refuse(event)
            case QuestionAsked():
                self._questions[event.request_id] = event
            case QuestionAnswered():
                self._answers[event.request_id] = event
            case CallStarted(name="note"):
                self._notes.append(str(_decoded(event.arguments).get("content", "")))
            case CallFinished():
                self._finish(event)
            case FileChanged(change=change):
                self._changed[change.path] = self._changed.get(change.path, 0) + 1
            case JobStarted():
                self._jobs[event.job_id] = event
            case JobEnded():
                self._jobs.pop(event.job_id, None)
            case SessionResumed():
                self._jobs.clear()

    def _refuse(self, answer: ApprovalAnswered) -> None:
        asked = self._asked.get(answer.request_id)
        if asked is not None:
            subjects = ", ".join(msgspec.json.encode(subject).decode() for subject in asked.subjects)
            self._refused.append(f"{asked.tool} {subjects}: refused by {answer.by} ({asked.reason})")

    def _finish(self, event: CallFinished) -> None:
        arguments = self._arguments.get(event.call_id, "")
        if event.error == "permission_denied":
            self._refused.append(f"{event.name} {one_line(arguments, 400)}: {one_line(event.content, 400)}")
        if event.name in _CHECKS:
            self._failed.pop(event.name, None)
            if not event.ok or event.metadata.get("success") is False:
                self._failed[event.name] = event.content
        if event.origin is not Origin.HARNESS and event.name != "retrieve_tool_result":
            source = f"{event.name} {one_line(arguments, 100)}"
            self._results.append((_RULE_FILE.search(arguments) is not None, source, event.content))

    # ------------------------------------------------------------------ as text

    def words_text(self, said_below: int, room: int) -> str:
        """The person's messages but the last `said_below`, which stand in the conversation still. What is beyond
        `room` bytes, oldest first but for the very first, is left to its lines that state a rule."""
        words = [text.strip() for text in self.words[: len(self.words) - said_below]]
        kept: dict[int, str] = {}
        for place in [0, *range(len(words) - 1, 0, -1)] if words else []:
            size = len(words[place].encode("utf-8", "replace"))
            if size <= min(room, _WORDS_OF_A_MESSAGE):
                kept[place] = words[place]
                room -= size
            else:
                rules = within(rule_lines(words[place]), 4096)
                kept[place] = "\n".join([f"[{size} bytes; its rules:]", *rules, "[whole in the transcript]"])
        return "\n".join(
            f'<message n="{place + 1}">\n{text}\n</message>' for place, text in sorted(kept.items()) if text
        )

    def rules_text(self, room: int) -> str:
        """Lines of tool results that state a rule, `room` bytes of them: those of files for rules first, then the
        strictest, then the newest."""
        newest = self._stated()
        ordered = [item for rank in (0, 1, 2) for item in newest if item[0] == rank]
        sources = {line: source for _, source, line in reversed(ordered)}
        places = {line: -place for place, (_, _, line) in enumerate(newest)}
        groups: dict[str, list[str]] = {}
        for line in within((line for _, _, line in ordered), room):
            groups.setdefault(sources[line], []).append(line)
        blocks = [
            "\n".join(
                [
                    f"from {contained(source)}:",
                    *(f"  {contained(line)}" for line in sorted(lines, key=places.__getitem__)),
                ]
            )
            for source, lines in groups.items()
        ]
        return "\n".join(blocks)

    def _stated(self) -> list[tuple[int, str, str]]:
        """Rank, source and text of each such line, newest result first; of results that are no file for rules, only
        the newest are read."""
        found, left = list[tuple[int, str, str]](), _READ_BYTES
        for from_rules, source, content in reversed(self._results):
            left -= 0 if from_rules else len(content)
            if from_rules or left >= 0:
                for line in reversed(rule_lines(content)):
                    found.append((0 if from_rules else 1 if is_strict(line) else 2, source, line))
        return found

    def told_text(self, active: Container[str]) -> str:
        """What the harness told last of each kind: mode, facts, changed instructions, the texts of `active` skills."""
        return "\n".join(text for kind, text in self._told.items() if stands_for(kind, active))

    def lists_text(self) -> str:
        """Plan and checklist with each item's status."""
        blocks = []
        for kind, changed in sorted(self._lists.items(), reverse=True):
            items = [
                f"- [{item.get('status', '')}] {item.get('step', item.get('content', item))}" for item in changed.items
            ]
            said = [changed.explanation] if changed.explanation else []
            blocks.append("\n".join([f"{kind.capitalize()}:", *said, *items]))
        return contained("\n".join(blocks))

    def refused_text(self) -> str:
        """Calls that the person or the policy refused."""
        return contained("\n".join(f"- {text}" for text in dict.fromkeys(self._refused)))

    def questions_text(self) -> str:
        """Each question with its answer, or that it is open."""
        lines = []
        for request, asked in self._questions.items():
            answered = self._answers.get(request)
            answers = {str(answer.get("id")): answer for answer in answered.answers} if answered is not None else {}
            for question in asked.questions:
                lines.append(f"- {_question(question)}\n  {_answer(answers.get(str(question.get('id'))))}")
        return contained("\n".join(lines))

    def open_text(self) -> str:
        """What is under way or still wrong: failed checks, running commands, changed files, notes."""
        lines = [f"- last {name} failed:\n{_cut(text)}" for name, text in self._failed.items()]
        lines += [f"- running in the background: {job.job_id}: {job.command}" for job in self._jobs.values()]
        if self._changed:
            paths = ", ".join(f"{path} ({count}x)" for path, count in self._changed.items())
            lines.append(f"- files changed so far: {one_line(paths, 4000)}")
        lines += [f"- noted: {text}" for text in dict.fromkeys(self._notes) if text]
        return contained("\n".join(lines))


def contained(text: str) -> str:
    """Text that cannot close a block it stands in."""
    return _CLOSING.sub(r"<\\/", text)


def _decoded(arguments: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _question(question: Mapping[str, Any]) -> str:
    options: Sequence[Any] = question.get("options") or ()
    shown = "; ".join(
        f"{option.get('label', '')} ({option.get('description', '')})" for option in options if isinstance(option, dict)
    )
    return f"{question.get('question', '')}" + (f" [{shown}]" if shown else "")


def _answer(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return "No answer yet: this question is open."
    label, value = str(answer.get("label", "")), str(answer.get("value", ""))
    return f"The developer answered: {label}" + (f" = {value}" if value and value != label else "")


def _cut(text: str) -> str:
    return text if len(text) <= 2000 else f"{text[:1400]}\n[...]\n{text[-600:]}"
