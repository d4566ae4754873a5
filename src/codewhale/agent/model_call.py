"""One model call: room for it reserved, the request sent and recorded, its answer collected, its cost settled."""

import msgspec
from msgspec import Struct

from codewhale.agent.collect import Collector, ModelAnswer
from codewhale.agent.turn import Turn
from codewhale.lib.clock import Clock
from codewhale.models.dialects.base import Price, Provider, RequestOptions
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    AnswerDropped,
    BudgetChanged,
    BudgetReserved,
    Event,
    RequestSent,
    RetryCountdown,
    UsageReported,
)
from codewhale.protocol.messages import Reasoning
from codewhale.protocol.ops import Limits
from codewhale.protocol.stream import Failed, Retrying, Usage
from codewhale.session.accounting import Accounts, affordable, priced, saved_by, worst_case
from codewhale.session.budget import Budget, BudgetExceeded, Spent
from codewhale.session.lanes import LaneClosed
from codewhale.session.prefixcache import Expected, cause_of_miss, expected_tokens
from codewhale.session.session import Session
from codewhale.session.streamed import StreamKept

# Under a bound, a model whose longest answer is unknown is asked for no more than this.
_LONGEST_ANSWER = 8192
# An answer that must be shorter than this is not worth asking for.
_SHORTEST_ANSWER = 256
# Tokens a byte: of text that was never counted, and of what was appended since the last count.
_GUESS, _APPENDED = 0.35, 0.5
# Of a picture's text form, one token.
_PICTURE_BYTES = 128
# Failures at which a provider has not begun to work.
NOT_BEGUN = ("connect", "auth", "rate_limit", "quota", "bad_request", "no_model", "context_length")
_SCRIPTED = "scripted"


class _Call(Struct):
    """A call under way: what is held for it, what the cache should know of it, and what a provider that says nothing
    is assumed to have read."""

    reserved: BudgetReserved
    sent: RequestSent
    body: bytes
    expected: Expected
    prompt: int
    idle: float


class ModelCalls:
    """The model calls of one turn, one after another."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._session = turn.session
        self._budget = turn.session.budget
        self._collector: Collector | None = None
        self._call: _Call | None = None
        self._again: _Call | None = None

    async def ask(self, *, purpose: str = "", extra: str = "", max_tokens: int = 0) -> ModelAnswer:
        """The model's answer to the conversation as it stands, once its provider's lane admits the request. A call with
        a `purpose` is made beside it: `extra` is its last word, and its answer is the caller's to keep. `max_tokens` 0
        is the model's own bound; a budget may set a lower one. Raises BudgetExceeded before anything is sent."""
        lane, owned = self._session.lane, bool(self._session.state.owner)
        if lane is None:
            return await self._ask(purpose, extra, max_tokens)
        if lane.cooling:
            self._turn.waiting_for = f"the rate limit of {self._session.provider.name}"
        try:
            async with lane.admitted(owned):
                return await self._ask(purpose, extra, max_tokens)
        except LaneClosed as closed:
            text = f"nothing was sent, for the provider said to an earlier request: {closed}"
            return ModelAnswer((), None, "", Failed("quota", text, False, False))

    async def _ask(self, purpose: str, extra: str, max_tokens: int) -> ModelAnswer:
        session, state = self._session, self._session.state
        provider, projection, header = session.provider, session.projection, state.pinned
        options = RequestOptions(max_tokens or provider.model.max_output, self._turn.effort)
        body, sha, messages = projection.request(header, options, extra)
        if fault := projection.fault(header, extra):
            return ModelAnswer((), None, "", Failed("bad_request", f"nothing was sent: {fault}", False, False))
        expected = self._expect(body)
        prompt = _prompt_tokens(expected, len(body), projection.picture_bytes, projection.sent_pictures)
        number = state.requests + 1
        reserved, longest = self._reserve(number, prompt, options.max_tokens)
        if longest != options.max_tokens:
            options = RequestOptions(longest, options.effort)
            body, sha, messages = projection.request(header, options, extra)
        sent = RequestSent(
            request=number,
            bytes=len(body),
            sha256=sha,
            messages=messages,
            max_tokens=options.max_tokens,
            effort=options.effort,
            purpose=purpose,
            extra=extra,
            expected_hit=min(expected.bytes, len(body)),
        )
        self._send(_Call(reserved, sent, body, expected, prompt, 0.0))
        hold = bool(provider.settings.facts.get("text_calls", True))
        tell = self._tell_of_retries if purpose else StreamKept(session).tell
        self._collector = Collector(tell, hold and not purpose, self)
        self._turn.waiting_for = f"the model ({purpose})" if purpose else "the model"
        try:
            stream = provider.stream(body)
            answer = await self._collector.read(stream if session.lane is None else session.lane.watched(stream))
        except Exception:
            # Not a failure of the provider, which is an answer: nobody will come back for what had come.
            if self._call is not None:
                self._budget.release(self._call.reserved)
            self._collector = self._call = None
            raise
        self._turn.waiting_for = ""
        self._collector = None
        self._settle(answer)
        return answer

    def salvage(self) -> ModelAnswer | None:
        """After a cancellation: what had come of a call that was under way, its cost settled; None without one."""
        if self._collector is None:
            return None
        answer = self._collector.answer()
        self._collector = None
        self._settle(answer, estimated=True)
        return answer

    # ------------------------------------------------------------------ an answer that broke

    def broke(self, answer: ModelAnswer, retrying: Retrying) -> None:
        self._again = self._call
        self._settle(answer, whole=False)
        self.drop(answer, retrying)
        self._turn.waiting_for = "the next try"

    def resent(self) -> None:
        """The same request once more, as a call of its own. Raises BudgetExceeded where there is no room for it."""
        last, self._again = self._again, None
        assert last is not None
        session = self._session
        number = session.state.requests + 1
        expected = self._expect(last.body)
        reserved = self._budget.reserve(number, last.reserved.tokens, last.reserved.money)
        hit = min(expected.bytes, len(last.body))
        sent = msgspec.structs.replace(last.sent, request=number, expected_hit=hit)
        self._send(_Call(reserved, sent, last.body, expected, last.prompt, 0.0))
        self._turn.waiting_for = f"the model ({sent.purpose})" if sent.purpose else "the model"

    def drop(self, answer: ModelAnswer, retrying: Retrying) -> None:
        """Record an answer that broke: what had come of it, and that nothing of it has run."""
        session, purpose = self._session, "" if self._again is None else self._again.sent.purpose
        calls = tuple(call.name for call in answer.calls)
        dropped = AnswerDropped(session.state.requests, retrying.reason, retrying.attempt, retrying.attempts)
        text = "" if purpose else answer.text
        session.emit(msgspec.structs.replace(dropped, delay=retrying.delay, text=text, calls=calls, purpose=purpose))

    def _tell_of_retries(self, event: Event) -> None:
        """Of a call beside the conversation the person is shown no words, only that it takes longer."""
        if isinstance(event, RetryCountdown):
            self._session.emit(event)

    # ------------------------------------------------------------------ before

    def _expect(self, body: bytes) -> Expected:
        session = self._session
        if session.prefix.empty and session.state.requests:
            session.prefix.recall(session.log.read(), self._route, session.projection.load_image)
        return session.prefix.expect(self._route, body, self._head)

    @property
    def _head(self) -> str:
        return self._session.state.pinned.sha256

    @property
    def _route(self) -> tuple[str, str]:
        return self._session.state.provider, self._session.state.model

    def _reserve(self, number: int, prompt: int, wanted: int) -> tuple[BudgetReserved, int]:
        """Hold room for a call at its worst, and say how long its answer may be (0 is no bound)."""
        provider, budget = self._session.provider, self._budget
        price, room = provider.model.price, budget.room()
        if budget.bounds_money and not price_known(provider):
            raise BudgetExceeded(unknown_price(*self._route))
        lefts = [] if room.tokens is None else [room.tokens - prompt]
        if room.money is not None and price is not None:
            left = affordable(price, prompt, room.money)
            lefts += [] if left is None else [left]
        if not lefts:
            answer = wanted or _LONGEST_ANSWER
            return budget.reserve(number, prompt + answer, _most(price, prompt, answer)), wanted
        answer = min(wanted or _LONGEST_ANSWER, max(min(lefts), min(wanted or _SHORTEST_ANSWER, _SHORTEST_ANSWER)))
        return budget.reserve(number, prompt + answer, _most(price, prompt, answer)), answer

    def _send(self, call: _Call) -> None:
        """Record that a request goes out; what is held for it is given back where that cannot be recorded."""
        session, expected = self._session, call.expected
        try:
            session.emit(call.reserved, call.sent)
        except BaseException:
            self._budget.release(call.reserved)
            raise
        now = session.clock.now()
        call.idle = now - expected.earlier.at if expected.earlier is not None else 0.0
        self._call = call
        if not call.sent.purpose:
            session.prefix.sent(self._route, call.body, expected, now, self._head)

    # ------------------------------------------------------------------ after

    def _settle(self, answer: ModelAnswer, whole: bool = True, estimated: bool = False) -> None:
        """Pay for a call; one whose answer broke is no step of its own. Of one that was stopped before its provider
        counted, the estimate is recorded."""
        call, self._call = self._call, None
        if call is None:
            return
        session, provider = self._session, self._session.provider
        price, now = provider.model.price, session.clock.now()
        usage = priced(_assumed(call, answer) if answer.usage is None else answer.usage, price, now)
        reports = [] if answer.usage is None else [self._report(call, usage, provider)]
        if not reports and estimated and usage.input:
            reports = [UsageReported(call.reserved.request, usage, estimated=True)]
        session.emit(*reports, self._budget.settle(call.reserved, usage, step=whole))
        for nearing in self._budget.warnings():
            session.notice("warning", nearing.text, f"budget_{nearing.percent}")

    def _report(self, call: _Call, usage: Usage, provider: Provider) -> UsageReported:
        facts, price = provider.settings.facts, provider.model.price
        if not call.sent.purpose:
            self._session.prefix.counted(self._route, usage.input)
        tokens = expected_tokens(call.expected, len(call.body), usage, facts)
        return UsageReported(
            request=call.reserved.request,
            usage=usage,
            expected_hit=tokens,
            cause=cause_of_miss(call.expected, tokens, usage, call.idle, facts),
            saved=None if price is None else saved_by(price, usage, self._session.clock.now()),
        )


def _prompt_tokens(expected: Expected, size: int, pictures: int, counted: int) -> int:
    """What a body of `size` bytes may count: by the provider's own count of what it begins with, where there is one.
    `pictures` of its bytes are pictures, `counted` of those stood in the last request."""
    earlier = expected.earlier
    if earlier is None or not earlier.input:
        return int((size - pictures) * _GUESS) + pictures // _PICTURE_BYTES
    fresh = max(0, pictures - counted)
    appended = max(0, size - expected.bytes - fresh)
    return int(earlier.tokens(expected.bytes) + appended * _APPENDED) + fresh // _PICTURE_BYTES


def _assumed(call: _Call, answer: ModelAnswer) -> Usage:
    """What a call took of which the provider has told no count."""
    failure = answer.failure
    if failure is not None and not failure.started and failure.kind in NOT_BEGUN:
        return Usage()
    said = len(answer.text) + sum(len(raw.name) + len(raw.arguments) for raw in answer.calls)
    said += sum(len(item.text) for item in answer.items if isinstance(item, Reasoning))
    return Usage(input=call.prompt, output=int(said * _GUESS))


def _most(price: Price | None, prompt: int, answer: int) -> float | None:
    return None if price is None else worst_case(price, prompt, answer)


def price_known(provider: Provider) -> bool:
    """Whether a bound on money can be kept: a script costs nothing, every other model needs its price."""
    return provider.model.price is not None or provider.settings.dialect == _SCRIPTED


def unknown_price(provider: str, model: str) -> str:
    """Why a bound on money cannot be kept, and what to do."""
    return (
        f"the price of {model} is unknown at {provider}, so a cost limit cannot be enforced: set "
        f'[providers.{provider}.prices."{model}"] with miss, hit and output per million tokens, or limit tokens'
    )


def session_budget(accounts: Accounts, price: Price | None, clock: Clock, owner: Session | None = None) -> Budget:
    """The budget of a session's whole life, with what its log says is used: the bounds that /budget sets. What a
    session takes is taken from its owner's budget too."""
    total = accounts.with_children({})
    money = total.cost.get(price.currency, 0.0) if price is not None else 0.0
    spent = Spent(total.calls, total.input + total.output, money)
    if owner is None:
        return Budget(accounts.limits, clock, spent=spent)
    return Budget(accounts.limits, clock, owner.id, parent=owner.budget, spent=spent)


def bound_session(session: Session, limits: Limits) -> None:
    """Bound a session's whole life, children included. Raises SessionError for a bound on money that cannot be
    kept."""
    if limits.cost is not None and not price_known(session.provider):
        raise SessionError(unknown_price(session.state.provider, session.state.model))
    session.emit(BudgetChanged(limits))
    session.budget.life.limits = limits
