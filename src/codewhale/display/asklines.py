"""What a person is asked, as plain lines with nothing left out but the middle of what is very long: for interfaces that
show text alone."""

from collections.abc import Mapping
from typing import Any

from codewhale.display.asks import bare_lines, block_lines, exact_lines, held_by, hides, kind_of, reason_of
from codewhale.display.words import Words
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.events import ApprovalAsked
from codewhale.protocol.tools import ChildSubject, CommandSubject, JobSubject, PathSubject, Subject, UrlSubject

MOST_ASKED_LINES = 400
_ASKED_TAIL = 150
_WIDTH = 100_000


def approval_lines(ask: ApprovalAsked, written: str, words: Words) -> list[str]:
    """An approval: what would run, what holds it, why it is asked. `written` is how the call was written, for one in
    which nothing is a command, a path or an address."""
    lines = [asked_by(ask.asker, words(f"asking.title_{kind_of(ask)}", tool=one_line(ask.tool, 80)), words)]
    body = [line for subject in ask.subjects for line in _subject(subject, words)]
    body += [_text(line) for block in ask.display for line in block_lines(block, _WIDTH, words)]
    if len(body) > MOST_ASKED_LINES:
        more = words("plain.more", n=len(body) - MOST_ASKED_LINES)
        body = [*body[: MOST_ASKED_LINES - _ASKED_TAIL], more, *body[-_ASKED_TAIL:]]
    if not body:
        body = [_text(line) for line in bare_lines(ask.tool, written, words("asking.no_arguments"), _WIDTH)]
    lines += body
    lines.append(f"{words('asking.sandbox')}: {held_by(ask, words)}")
    lines.append(f"{words('asking.why')}: {one_line(reason_of(ask, words), 500)} ({one_line(ask.rule, 100)})")
    lines += [f"{clause.id}: {one_line(clause.text, 500)}" for clause in ask.clauses]
    if any(hides(text) for text in _texts(ask)):
        lines.append(words("asking.hidden"))
    return lines


def asked_by(asker: str, title: str, words: Words) -> str:
    """What is asked, behind the name of a child that asks."""
    return words("asking.by", asker=one_line(asker, 60), title=title) if asker else title


def question_text(question: Mapping[str, Any]) -> str:
    """The words of a question."""
    return sanitise(str(question.get("question", "")))


def options_of(question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of a question."""
    return [option for option in question.get("options") or () if isinstance(option, Mapping)]


def takes_several(question: Mapping[str, Any]) -> bool:
    """Whether more than one choice may be taken."""
    return any(question.get(key) is True for key in ("multiple", "multi_select", "multiSelect"))


def _subject(subject: Subject, words: Words) -> list[str]:
    match subject:
        case CommandSubject(command=command, cwd=cwd, background=background, stdin=stdin):
            where = words("asking.root") if cwd in ("", ".") else sanitise(cwd)
            behind = f" {words('asking.background')}" if background else ""
            given = _exact(stdin, f"{words('asking.stdin')} ") if stdin else []
            return [*_exact(command, "$ "), *given, f"{words('asking.in_folder', folder=where)}{behind}"]
        case PathSubject(path=path, write=write):
            return _exact(path, f"{words('asking.write' if write else 'asking.read')} ")
        case UrlSubject(url=url):
            return _exact(url, f"{words('asking.url')} ")
        case JobSubject(id=job, text=text):
            return [*_exact(job, f"{words('asking.job_tell' if text else 'asking.job_end')} "), *_exact(text, "")]
        case ChildSubject(role=role, objective=objective):
            return [*_exact(role, f"{words('asking.child')} "), *_exact(objective, "")]


def _texts(ask: ApprovalAsked) -> list[str]:
    """What a person is asked to read of others."""
    found = []
    for subject in ask.subjects:
        match subject:
            case CommandSubject(command=text, stdin=stdin):
                found += [text, stdin]
            case PathSubject(path=text) | UrlSubject(url=text) | JobSubject(text=text) | ChildSubject(objective=text):
                found.append(text)
    return found


def _text(line: Any) -> str:
    return "".join(part for part, _ in line)


def _exact(text: str, first: str) -> list[str]:
    return [_text(line) for line in exact_lines(text, _WIDTH, first=first)] if text or first else []
