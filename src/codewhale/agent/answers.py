"""The answers of a turn: which of their words are calls, and what a model is told that said words where a call was
due."""

import re

import msgspec

from codewhale.agent.collect import Answer, RawCall
from codewhale.agent.dispatch import Dispatcher, Outcome
from codewhale.agent.endings import shortfall
from codewhale.agent.prepare import Prepared, may_hold_calls
from codewhale.agent.promises import Moment, opening, says_done
from codewhale.agent.reminders import LOST, MAY_STAND, PAUSED, TEXT_CALL, TIMES, UNFINISHED, telling, times
from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import ContextAppended, TextStreamed
from codewhale.protocol.messages import Text
from codewhale.session.session import Session

# What every text that looks like a call has somewhere.
_SIGNS = re.compile(r"[<\[{`(]|\*\*\* |Action|to=")


class Answers:
    """Follows one turn: the calls that were made in it, and what the model was told since the last one."""

    def __init__(self, session: Session, catalog: Catalog, dispatcher: Dispatcher) -> None:
        self._session = session
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._told: list[str] = []
        self._heeded = 0
        self._doubted = ""
        self._called = self._acted = False
        self._openings: set[str] = set()

    # ------------------------------------------------------------------ words that are calls

    @property
    def _channel(self) -> bool | None:
        """Whether text is this model's channel for calls; None where nothing is known, and calls are native."""
        provider = self._session.provider
        fact = None if provider is None else provider.settings.facts.get("text_calls")
        return None if fact is None else bool(fact)

    def with_calls(self, answer: Answer) -> Answer:
        """The answer with the calls that its text is or ends with as calls, where they may be taken as such. What was
        held back of the rest is shown: what a person saw is what is recorded."""
        said = answer.text or answer.reasoning
        look = self._channel is not False and not answer.calls and may_hold_calls(said)
        repairer = self._dispatcher.repairer() if look else None
        found = repairer.find_calls(said) if repairer is not None else None
        # A server reads calls in answers alone: in thoughts they are none of its channel.
        if repairer is None or found is None or not repairer.takes(found, bool(self._channel and answer.text)):
            self.show(answer)
            return answer
        kept = [item for item in answer.items if not isinstance(item, Text)]
        before = found.before if answer.text and found.before.strip() else ""
        seen = len(answer.text) - len(answer.held)
        unseen, before = before[seen:], before if len(before) > seen else answer.text[:seen]
        if unseen:
            self._session.emit(TextStreamed(unseen))
        words = [Text(before, source="model")] if before else []
        calls = [RawCall("", call.name, call.arguments, call.code) for call in found.calls]
        return msgspec.structs.replace(answer, items=(*kept, *words, *calls))

    def show(self, answer: Answer) -> None:
        """Tell what was held back of a text that turned out to be words."""
        if answer.held:
            self._session.emit(TextStreamed(answer.held))

    # ------------------------------------------------------------------ words where a call was due

    def lacks(self, answer: Answer) -> tuple[str, bool]:
        """What an answer without calls is short of, "" where it is an end, and whether the turn goes on: the model has
        been told then."""
        if self._stands(answer):
            return "", False
        look = None
        if _SIGNS.search(answer.text):
            look = self._dispatcher.repairer().looks_like_call(answer.text)
        short = shortfall(answer, self._moment(), look is not None, self._is_tool)
        if short in (PAUSED, LOST, UNFINISHED) and self._told and answer.text.strip():
            return "", False
        if short in MAY_STAND and self._heeded >= TIMES and not self._told:
            return "", False  # it did each time what it was asked to, and says no more than this
        if not short or len(self._told) >= TIMES or self._told.count(short) >= times(short):
            return short, False
        self._told.append(short)
        self._doubted = answer.text if short in MAY_STAND else ""
        call = self._readable(look.name, look.arguments) if look is not None and short == TEXT_CALL else None
        alone = self._channel is not False
        self._session.emit(ContextAppended("nudge", telling(short, len(self._told), call, alone)))
        return short, True

    def answer(self, answer: Answer) -> str:
        """The words that stand as the turn's answer: those before, where the last ones only say so."""
        return self._doubted if self._stands(answer) else answer.text

    def _stands(self, answer: Answer) -> bool:
        return bool(self._doubted) and says_done(answer.text)

    def _moment(self) -> Moment:
        session = self._session
        return Moment(
            asked=session.asked,
            mode=session.state.mode,
            called=self._called,
            acted=self._acted,
            openings=frozenset(self._openings),
            denies=self._told[-1:] == [TEXT_CALL],
        )

    def _is_tool(self, name: str) -> bool:
        return self._catalog.resolve(name) is not None

    def _readable(self, name: str, arguments: str) -> tuple[str, str] | None:
        """A call as the model is shown it: under our names, as JSON; None where it would be refused."""
        verdict = self._dispatcher.repairer().judge(name, arguments)
        if verdict.error is not None or verdict.arguments is None:
            return None
        return verdict.name, msgspec.json.encode(verdict.arguments).decode()

    # ------------------------------------------------------------------ calls

    def note(self, text: str, prepared: list[Prepared], outcomes: list[Outcome]) -> None:
        """Take in calls that were made, the text they came with, and what came of them."""
        self._heeded += bool(self._told)
        self._told, self._doubted, self._called = [], "", True
        self._openings.add(opening(text.strip()))
        self._openings.discard("")
        for item, outcome in zip(prepared, outcomes, strict=True):
            self._acted = self._acted or (outcome.ok and item.spec is not None and item.spec.touches)
