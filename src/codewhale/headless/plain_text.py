"""Events, approvals and questions as plain lines, and the typed words that answer: no colours, no cursor, no signs that
a screen reader stumbles over."""

import re
from typing import Any, Literal

from msgspec import Struct

from codewhale.display.asklines import approval_lines, asked_by, options_of, question_text, takes_several
from codewhale.display.asks import Asks, kind_of, offer_of, shown_question
from codewhale.display.transcript.blocks import CallCard, Countdown, NoteBlock, Receipt, TranscriptBlock, Work
from codewhale.display.transcript.calls import call_text
from codewhale.display.transcript.drawing import lines_of
from codewhale.display.transcript.model import TranscriptModel
from codewhale.display.words import Words
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import (
    AnswerDropped,
    ApprovalAsked,
    CallFinished,
    CallStarted,
    ChildClosed,
    Envelope,
    JobEnded,
    MessageAdded,
    QuestionAsked,
    RequestSent,
    RetryCountdown,
    TextStreamed,
)
from codewhale.protocol.messages import Text
from codewhale.protocol.ops import Answer

MOST_LINES = 60
_TAIL_LINES = 20
_LINE = 2_000
_SIGN = re.compile(r"^(\s*)([^\x00-\x7f\w])\s")
_NAMED = {"✗": "plain.failed", "✓": "plain.done", "●": "plain.done"}
YES, NO = frozenset({"y", "yes", "是"}), frozenset({"n", "no", "否"})
# What the model reads as the label of an answer in the person's own words.
OWN = "Other"


class PlainRenderer:
    """Takes each event once, in order, and says its lines; words of the model as soon as a line of them is whole."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._model = TranscriptModel()
        self._streamed = ""
        self._told = 0

    def tell(self, envelope: Envelope) -> list[str]:
        """The lines of an event, safe to print; none for most."""
        event = envelope.event
        card = self._model.open_calls.get(event.call_id) if isinstance(event, CallFinished) else None
        settled = len(self._model.settled)
        self._model.touched.clear()
        self._model.take(envelope)
        match event:
            case TextStreamed(text=text):
                return self._stream(text)
            case RequestSent():
                return self._cut_off()
            case AnswerDropped():
                told = self._cut_off()
                return [*told, *(line for block in self._model.settled[settled:] for line in self._plain(block)[:1])]
            case MessageAdded(message=message) if message.role == "assistant":
                whole = "".join(part.text for part in message.parts if isinstance(part, Text))
                return self._message(whole)
            case CallStarted(call_id=call_id):
                begun = self._model.open_calls.get(call_id)
                return [one_line(call_text(self._words, begun), 300)] if begun is not None else []
            case CallFinished() if card is not None:
                return self._plain(card)
            case RetryCountdown() if not event.broke:  # of one that broke, the line of what was dropped says it
                return [
                    line for block in self._model.live if isinstance(block, Countdown) for line in self._plain(block)
                ]
            case JobEnded() | ChildClosed():
                return [line for at in sorted(self._model.touched) for line in self._plain(self._model.settled[at])]
        return [line for block in self._model.settled[settled:] if _is_told(block) for line in self._plain(block)]

    def _stream(self, text: str) -> list[str]:
        self._streamed += text
        end = self._streamed.rfind("\n") + 1
        lines = self._said(self._streamed[self._told : end])
        self._told = max(self._told, end)
        return lines

    def _message(self, whole: str) -> list[str]:
        # What was held back or repaired after it was streamed is said again as it now stands.
        told = self._told if whole.startswith(self._streamed[: self._told]) else 0
        self._told = told
        lines = self._said(whole[told:].rstrip("\n"))
        self._streamed, self._told = "", 0
        return lines

    def _cut_off(self) -> list[str]:
        lines = self._said(self._streamed[self._told :])
        self._streamed, self._told = "", 0
        return lines

    def _said(self, text: str) -> list[str]:
        if not text.strip():
            return []
        lines = [sanitise(line) for line in text.removesuffix("\n").split("\n")]
        return lines if self._told else [self._words("plain.model"), *lines]

    def _plain(self, block: TranscriptBlock) -> list[str]:
        first, *rest = lines_of(block, self._words, said=False) or [""]
        head = _SIGN.sub(self._sign, first).replace(" · ", ", ")
        if isinstance(block, CallCard):
            head = head.replace("  ", " ", 1).replace("  ", ", ")
        lines = [head, *(_SIGN.sub(r"\1  ", line) for line in rest)]
        if len(lines) > MOST_LINES:
            more = self._words("plain.more", n=len(lines) - MOST_LINES)
            lines = [*lines[: MOST_LINES - _TAIL_LINES], more, *lines[-_TAIL_LINES:]]
        return [line if len(line) <= _LINE else line[:_LINE] + "…" for line in lines]

    def _sign(self, match: re.Match[str]) -> str:
        name = _NAMED.get(match[2], "")
        return f"{self._words(name)} " if name else ""


def _is_told(block: TranscriptBlock) -> bool:
    """Whether a settled block is a line of its own: what the harness told the model is not."""
    if isinstance(block, NoteBlock):
        return block.key not in ("told", "reported")
    return isinstance(block, Receipt | Work) or (isinstance(block, CallCard) and not block.call_id)


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
        self._granting: Literal["", "always", "session", "sandbox"] = ""

    @property
    def open(self) -> Envelope | None:
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
        lines = approval_lines(ask, self._asks.arguments(asked.session, ask.call_id), words)
        keys = words("plain.allow_clause", word=ask.word) if ask.clauses else words("plain.allow")
        if ask.offer is not None:
            lines.append(f"{words('plain.offer')}: {self._offered(ask.offer)}")
            keys = words("plain.allow_offer")
        keys += f" {words('plain.held')}" if ask.held else ""
        keys += f" {words('plain.edit')}" if kind_of(ask) == "command" else ""
        return [*lines, keys]

    def _offered(self, offer: Offer) -> str:
        return one_line(offer_of(offer, self._words), 500)

    def _allow(self, asked: Envelope, ask: ApprovalAsked, said: str) -> Reply:
        word, _, reason = said.partition(" ")
        word = word.lower().rstrip(",.:;")
        request = ask.request_id
        granting, self._granting = self._granting, ""
        if ask.clauses and ask.confirmed(said):
            return Reply(self._done(asked, Answer(asked.session, request, allowed=True, confirm=said)))
        if word in YES and not reason and not ask.clauses:
            return Reply(self._done(asked, Answer(asked.session, request, allowed=True, remember=granting)))
        if granting:
            return Reply(lines=(self._words("plain.allow_offer"),))
        if word in NO:
            return Reply(self._done(asked, Answer(asked.session, request)), reason.strip())
        if word == "e" and reason.strip() and kind_of(ask) == "command":
            changed = Answer(asked.session, request, allowed=True, command=reason.strip())
            return Reply(self._done(asked, changed))
        if said in ("a", "s") and ask.offer is not None:
            self._granting = "always" if said == "a" and ask.offer.field != "folder" else "session"
            return Reply(lines=(f"{self._words(f'asking.grant_{self._granting}')}: {self._offered(ask.offer)}? (y/n)",))
        if said == "h" and ask.held:
            self._granting = "sandbox"
            return Reply(lines=(f"{self._words('asking.offer_sandbox', press='/approval suggest')} (y/n)",))
        if ask.clauses:
            return Reply(lines=(self._words("plain.allow_clause", word=ask.word),))
        return Reply(lines=(self._words("plain.allow_offer" if ask.offer is not None else "plain.allow"),))

    # -------------------------------------------------------------- questions

    def _question(self, event: Any) -> list[str]:
        questions = event.questions
        at = len(self._answers)
        if at >= len(questions):
            return []
        question = shown_question(event.request_id, questions[at], self._words)
        header = one_line(str(question.get("header", "")), 60) or self._words("asking.question_title")
        number = (
            f" ({self._words('asking.several', number=at + 1, count=len(questions))})" if len(questions) > 1 else ""
        )
        lines = [asked_by(event.asker, f"{header}{number}: {question_text(question)}", self._words)]
        for index, option in enumerate(options_of(question), 1):
            detail = one_line(str(option.get("description", "")), 300)
            lines.append(f"{index}. {one_line(str(option.get('label', '')), 200)}{': ' + detail if detail else ''}")
        return [*lines, self._words("plain.choose_several" if takes_several(question) else "plain.choose")]

    def _answer(self, asked: Envelope, event: QuestionAsked, said: str) -> Reply:
        if not said:
            return Reply(lines=tuple(self.ask(again=True)))
        question = event.questions[len(self._answers)]
        labels = [str(option.get("label", "")) for option in options_of(question)]
        shown = [
            str(option.get("label", ""))
            for option in options_of(shown_question(event.request_id, question, self._words))
        ]
        said = next((labels[at] for at, text in enumerate(shown) if text.lower() == said.lower()), said)
        chosen = _chosen(said, labels, takes_several(question))
        value: Any = chosen if takes_several(question) else chosen[0] if chosen else ""
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


def _chosen(said: str, labels: list[str], several: bool) -> list[str]:
    """The labels of typed numbers ("2", "1,3") or of a typed label; [] for words of one's own."""
    exact = [label for label in labels if label.lower() == said.lower()]
    if exact:
        return exact
    parts = said.replace(",", " ").split()
    if not all(part.isdecimal() and 0 < int(part) <= len(labels) for part in parts):
        return []
    return list(dict.fromkeys(labels[int(part) - 1] for part in parts)) if several or len(parts) == 1 else []
