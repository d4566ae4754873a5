"""Approvals and questions in lines: all of what is asked, and the typed words that answer it."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from codewhale.display.asks import Asks
from codewhale.display.exact import (
    bare_lines,
    block_lines,
    exact_lines,
    held_by,
    hides,
    kind_of,
    reason_of,
)
from codewhale.display.words import Words
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import ApprovalAsked, Envelope, QuestionAsked
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import CommandSubject, JobSubject, PathSubject, Subject, UrlSubject

YES, NO = frozenset({"y", "yes", "是"}), frozenset({"n", "no", "否"})
MOST_LINES = 400
_TAIL_LINES = 150
_WIDTH = 100_000
# What the model reads as the label of an answer in the person's own words.
OWN = "Other"


class Reply(Struct, frozen=True):
    """What a typed line came to: the `answer` to submit (None: not yet, or no answer), a `reason` for the model, and
    `lines` for the person."""

    answer: Answer | None = None
    reason: str = ""
    lines: tuple[str, ...] = ()


class PlainAsks:
    """What is open, one ask at a time. `open` is the one at hand."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._asks = Asks()
        self._shown: Envelope | None = None
        self._answers: list[dict[str, Any]] = []
        # What a first word would grant for longer, and a second one has to.
        self._granting: Literal["", "always", "session"] = ""

    @property
    def open(self) -> Envelope | None:
        """What waits for an answer."""
        return self._asks.first

    def take(self, envelope: Envelope) -> list[str]:
        """Count an event in; the lines of what is asked now, if that is another ask."""
        self._asks.take(envelope)
        return self.ask()

    def ask(self, again: bool = False) -> list[str]:
        """The lines of the ask at hand; none when it was shown, unless `again`."""
        first = self._asks.first
        if first is None or (first is self._shown and not again):
            self._shown = first
            return []
        if first is not self._shown:
            self._answers, self._granting = [], ""
        self._shown = first
        event = first.event
        return self._approval(first, event) if isinstance(event, ApprovalAsked) else self._question(event)

    def reply(self, line: str) -> Reply:
        """What a typed line means for the ask at hand."""
        asked = self._asks.first
        if asked is None:
            return Reply()
        said = line.strip()
        if isinstance(asked.event, ApprovalAsked):
            return self._allow(asked, asked.event, said)
        if isinstance(asked.event, QuestionAsked):
            return self._answer(asked, asked.event, said)
        return Reply()

    def refuse(self) -> Answer | None:
        """The answer of nobody: a refusal, or no answers."""
        asked = self._asks.first
        return None if asked is None else self._done(asked, Answer(asked.session, _request(asked)))

    # -------------------------------------------------------------- approvals

    def _approval(self, asked: Envelope, ask: ApprovalAsked) -> list[str]:
        words = self._words
        lines = [words(f"asking.title_{kind_of(ask)}", tool=one_line(ask.tool, 80))]
        body = [line for subject in ask.subjects for line in self._subject(subject)]
        body += [_text(line) for block in ask.display for line in block_lines(block, _WIDTH)]
        if len(body) > MOST_LINES:
            more = words("plain.more", n=len(body) - MOST_LINES)
            body = [*body[: MOST_LINES - _TAIL_LINES], more, *body[-_TAIL_LINES:]]
        if not body:
            written = self._asks.arguments(asked.session, ask.call_id)
            body = [_text(line) for line in bare_lines(ask.tool, written, words("asking.no_arguments"), _WIDTH)]
        lines += body
        lines.append(f"{words('asking.sandbox')}: {held_by(ask, words)}")
        lines.append(f"{words('asking.why')}: {one_line(reason_of(ask, words), 500)} ({one_line(ask.rule, 100)})")
        if any(hides(text) for text in _texts(ask)):
            lines.append(words("asking.hidden"))
        keys = words("plain.allow")
        if ask.offer is not None:
            lines.append(f"{words('plain.offer')}: {self._offered(ask.offer)}")
            keys = words("plain.allow_offer")
        return [*lines, keys]

    def _offered(self, offer: Offer) -> str:
        what = self._words(f"asking.offer_{offer.field}", tool=one_line(offer.tool, 80), value=sanitise(offer.value))
        return one_line(what, 500)

    def _subject(self, subject: Subject) -> list[str]:
        words = self._words
        match subject:
            case CommandSubject(command=command, cwd=cwd, background=background, stdin=stdin):
                where = words("asking.root") if cwd in ("", ".") else sanitise(cwd)
                behind = f" {words('asking.background')}" if background else ""
                given = _exact(stdin, f"{words('asking.stdin')} ") if stdin else []
                return [*_exact(command, "$ "), *given, f"{words('asking.folder')}: {where}{behind}"]
            case PathSubject(path=path, write=write):
                return _exact(path, f"{words('asking.write' if write else 'asking.read')} ")
            case UrlSubject(url=url):
                return _exact(url, f"{words('asking.url')} ")
            case JobSubject(id=job, text=text):
                return [*_exact(job, f"{words('asking.job_tell' if text else 'asking.job_end')} "), *_exact(text, "")]

    def _allow(self, asked: Envelope, ask: ApprovalAsked, said: str) -> Reply:
        word, _, reason = said.partition(" ")
        word = word.lower().rstrip(",.:;")
        request = ask.request_id
        granting, self._granting = self._granting, ""
        if word in YES and not reason:
            return Reply(self._done(asked, Answer(asked.session, request, allowed=True, remember=granting)))
        if granting:
            return Reply(lines=(self._words("plain.allow_offer"),))
        if word in NO:
            return Reply(self._done(asked, Answer(asked.session, request)), reason.strip())
        if said in ("a", "s") and ask.offer is not None:
            self._granting = "always" if said == "a" else "session"
            return Reply(lines=(f"{self._words(f'asking.grant_{self._granting}')}: {self._offered(ask.offer)}? (y/n)",))
        return Reply(lines=(self._words("plain.allow_offer" if ask.offer is not None else "plain.allow"),))

    # -------------------------------------------------------------- questions

    def _question(self, event: Any) -> list[str]:
        questions = event.questions
        at = len(self._answers)
        if at >= len(questions):
            return []
        question = questions[at]
        header = one_line(str(question.get("header", "")), 60) or self._words("asking.question_title")
        number = (
            f" ({self._words('asking.several', number=at + 1, count=len(questions))})" if len(questions) > 1 else ""
        )
        lines = [f"{header}{number}: {sanitise(str(question.get('question', '')))}"]
        for index, option in enumerate(_options(question), 1):
            detail = one_line(str(option.get("description", "")), 300)
            lines.append(f"{index}. {one_line(str(option.get('label', '')), 200)}{': ' + detail if detail else ''}")
        return [*lines, self._words("plain.choose_several" if _several(question) else "plain.choose")]

    def _answer(self, asked: Envelope, event: QuestionAsked, said: str) -> Reply:
        if not said:
            return Reply(lines=tuple(self.ask(again=True)))
        question = event.questions[len(self._answers)]
        labels = [str(option.get("label", "")) for option in _options(question)]
        chosen = _chosen(said, labels, _several(question))
        value: Any = chosen if _several(question) else chosen[0] if chosen else ""
        answer = {"label": ", ".join(chosen), "value": value} if chosen else {"label": OWN, "value": said}
        self._answers.append({"id": str(question.get("id", "")), **answer})
        if len(self._answers) < len(event.questions):
            return Reply(lines=tuple(self._question(event)))
        return Reply(self._done(asked, Answer(asked.session, event.request_id, answers=tuple(self._answers))))

    def _done(self, asked: Envelope, answer: Answer) -> Answer:
        self._asks.drop(_request(asked))
        return answer


def _request(asked: Envelope) -> str:
    return str(getattr(asked.event, "request_id", ""))


def _texts(ask: ApprovalAsked) -> list[str]:
    """What a person is asked to read of others."""
    found = []
    for subject in ask.subjects:
        match subject:
            case CommandSubject(command=text, stdin=stdin):
                found += [text, stdin]
            case PathSubject(path=text) | UrlSubject(url=text) | JobSubject(text=text):
                found.append(text)
    return found


def _text(line: Any) -> str:
    return "".join(part for part, _ in line)


def _exact(text: str, first: str) -> list[str]:
    return [_text(line) for line in exact_lines(text, _WIDTH, first=first)] if text or first else []


def _options(question: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [option for option in question.get("options") or () if isinstance(option, Mapping)]


def _several(question: Mapping[str, Any]) -> bool:
    return any(question.get(key) is True for key in ("multiple", "multi_select", "multiSelect"))


def _chosen(said: str, labels: list[str], several: bool) -> list[str]:
    """The labels of typed numbers ("2", "1,3") or of a typed label; [] for words of one's own."""
    exact = [label for label in labels if label.lower() == said.lower()]
    if exact:
        return exact
    parts = said.replace(",", " ").split()
    if not all(part.isdecimal() and 0 < int(part) <= len(labels) for part in parts):
        return []
    return list(dict.fromkeys(labels[int(part) - 1] for part in parts)) if several or len(parts) == 1 else []
