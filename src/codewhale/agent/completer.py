"""One-shot model calls beside the conversation, for tools. Nothing of them joins it; each is recorded whole, a question
by what it is made of, and paid from the session's budget."""

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import nullcontext

from msgspec import Struct
from msgspec.json import encode

from codewhale.agent.childtask import unfit, wanted_form
from codewhale.agent.collect import Collector, ModelAnswer
from codewhale.agent.model_call import NOT_BEGUN, price_known, unknown_price
from codewhale.agent.opening import FAST_MODEL
from codewhale.agent.titles import MOST_TOKENS
from codewhale.agent.turn import Turn
from codewhale.models.dialects.base import Price, Provider, RequestOptions
from codewhale.models.fim import SHAPES, fim_request, nearest
from codewhale.models.prices import price_of
from codewhale.protocol.errors import QuestionFailed, ToolError
from codewhale.protocol.events import AnswerDropped, BudgetReserved, Event, RequestSent, RetryCountdown, UsageReported
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.ports import Infilled, ModelQuestion, ModelReply
from codewhale.protocol.stream import Retrying, Usage
from codewhale.session.accounting import priced, worst_case
from codewhale.session.budget import BudgetExceeded
from codewhale.session.lanes import LaneClosed
from codewhale.session.questions import QUESTION, QuestionRecord
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session

_CALL_SECONDS = 600.0
_PATIENCE = 30  # times that a question is asked again of a provider that is asked too much


class Completions:
    """The calls of any session. Implements the Completer port."""

    def __init__(self, find: Callable[[str], Turn], redactor: Callable[[str], Redactor]) -> None:
        self._find = find
        self._redactor = redactor

    async def complete(self, session: str, prompt: str, *, max_tokens: int) -> str:
        return await self._complete(session, prompt, max_tokens, "complete", self._find(session).effort)

    async def title(self, session: str, prompt: str) -> str:
        """The answer to a prompt for a title: the cheapest call there is. Raises ToolError."""
        return await self._complete(session, prompt, MOST_TOKENS, "title", "off")

    async def _complete(self, session: str, prompt: str, max_tokens: int, purpose: str, effort: str) -> str:
        turn = self._find(session)
        provider, model = turn.session.provider, turn.session.state.model
        message = Message("user", (Text(self._redactor(session).text(prompt), source="harness"),))
        wire = provider.dialect.message(message, _no_image)
        body = provider.dialect.body(model, "", "", (wire,), RequestOptions(max_tokens, effort))
        return (await self._ask(turn.session, _Call(provider, body, purpose, max_tokens, body.decode()))).text

    def asks(self, session: str) -> str:
        target = self._find(session).session
        return str(target.provider.settings.facts.get(FAST_MODEL) or target.state.model)

    async def question(self, session: str, question: ModelQuestion) -> ModelReply:
        target = self._find(session).session
        text = self._redactor(session).text(question.text)
        wanted = () if question.schema is None else (wanted_form(question.schema),)
        record = QuestionRecord(
            model=question.model or self.asks(session),
            recipe=question.recipe,
            system="\n".join(filter(None, (question.system, *wanted))),
            effort=question.effort,
            temperature=question.temperature,
            redacted=text != question.text,
        )
        body = record.body(target.provider.dialect, text, question.max_tokens)
        call = _Call(
            target.provider,
            body,
            QUESTION,
            question.max_tokens,
            encode(record).decode(),
            record.model,
            question.seconds,
        )
        answer = await self._admitted(target, call)
        if question.schema is not None and (wrong := unfit(answer.text, question.schema)):
            raise QuestionFailed("execution_failed", wrong, "schema")
        return ModelReply(answer.text, answer.finish, answer.usage or Usage(), record.model)

    async def _admitted(self, session: Session, call: "_Call") -> ModelAnswer:
        """The answer, once the provider's lane has room; where the provider is asked too much, asked again behind what
        it says to wait."""
        for patience in range(_PATIENCE, -1, -1):
            try:
                async with nullcontext() if session.lane is None else session.lane.admitted(True):
                    return await self._ask(session, call)
            except LaneClosed as closed:
                raise QuestionFailed("not_available", f"nothing was sent: {closed}", "quota") from None
            except QuestionFailed as failed:
                if failed.failure != "rate_limit" or not patience:
                    raise
        raise AssertionError("unreachable")

    async def infill(self, session: str, prefix: str, suffix: str, *, max_tokens: int) -> Infilled:
        target = self._find(session).session
        provider, model = target.provider, target.state.model
        if provider.settings.facts.get("fim") not in SHAPES:
            known = ", ".join(SHAPES)
            raise ToolError(
                "not_available",
                f"{model} at provider {provider.name} is not known to support fill-in-the-middle; "
                f"if it does, set providers.{provider.name}.facts.fim to its way: {known}.",
            )
        window = provider.model.window
        hide = self._redactor(session).text
        before, behind = nearest(hide(prefix), hide(suffix), window, max_tokens)
        left_out = len(prefix.encode()) + len(suffix.encode()) - len(before.encode()) - len(behind.encode())
        carrier, body = fim_request(provider, model, before, behind, max_tokens)
        try:
            answer = await self._ask(target, _Call(carrier, body, "infill", max_tokens, body.decode()))
        finally:
            if carrier is not provider:
                await carrier.aclose()
        return Infilled(answer.text, answer.finish == "length", max(0, left_out))

    async def _ask(self, session: Session, call: "_Call") -> ModelAnswer:
        price = _price(session, call)
        reserved = _reserve(session, len(call.body), call.max_tokens, price)
        sent = RequestSent(
            request=reserved.request,
            bytes=len(call.body),
            sha256=hashlib.sha256(call.body).hexdigest(),
            messages=0,
            max_tokens=call.max_tokens,
            purpose=call.purpose,
            extra=call.record,
            model=call.model if call.model != session.state.model else "",
        )
        try:
            session.emit(*(() if call.purpose == QUESTION else (reserved,)), sent)
        except BaseException:
            session.budget.release(reserved)
            raise
        limit = asyncio.timeout(call.seconds)

        def tell(event: Event) -> None:
            if not isinstance(event, RetryCountdown):
                return
            if call.purpose == QUESTION and (until := limit.when()) is not None:
                limit.reschedule(until + event.delay)  # what the provider asks to wait is no time of the model's
            if call.purpose not in ("title", QUESTION):
                session.emit(event)

        tries = _Tries(session, sent)
        collector = Collector(tell, asking=tries)
        try:
            stream = call.carrier.stream(call.body)
            watched = stream if call.purpose != QUESTION or session.lane is None else session.lane.watched(stream)
            async with limit:
                await collector.read(watched)
        except TimeoutError:
            text = f"the model did not answer within {call.seconds:g} seconds."
            raise QuestionFailed("timeout", text, "timeout") from None
        finally:
            answer = collector.answer()
            failed = answer.failure
            free = failed is not None and not failed.started and failed.kind in NOT_BEGUN
            usage = tries.whole(answer.usage, price)
            _settle(session, reserved, usage, free)
        if failed is not None:
            raise QuestionFailed("execution_failed", f"the model call failed: {failed.message}.", failed.kind)
        return answer


class _Call(Struct, frozen=True):
    """One call: what is sent to whom, for what, and what the log keeps of it. `model` "" is the session's."""

    carrier: Provider
    body: bytes
    purpose: str
    max_tokens: int
    record: str
    model: str = ""
    seconds: float = _CALL_SECONDS


class _Tries:
    """What the tries of one call took whose answers broke."""

    def __init__(self, session: Session, sent: RequestSent) -> None:
        self._session = session
        self._sent = sent
        self._broken: list[Usage | None] = []

    def broke(self, answer: ModelAnswer, retrying: Retrying) -> None:
        self._broken.append(answer.usage)
        request, purpose = self._sent.request, self._sent.purpose
        self._session.emit(
            AnswerDropped(request, retrying.reason, retrying.attempt, retrying.attempts, purpose=purpose)
        )

    def resent(self) -> None:
        """The call is recorded once, with all of its tries."""

    def whole(self, last: Usage | None, price: Price | None) -> Usage | None:
        """What all tries took together; None where the last was not counted, and the estimate stands."""
        if last is None:
            return None
        counted = [usage if usage is not None else Usage(input=last.input) for usage in self._broken]
        paid = [priced(usage, price, self._session.clock.now()) for usage in (*counted, last)]
        costs = [usage.cost for usage in paid if usage.cost is not None]
        return Usage(
            input=sum(usage.input for usage in paid),
            output=sum(usage.output for usage in paid),
            cache_hit=sum(usage.cache_hit for usage in paid),
            cache_miss=sum(usage.cache_miss for usage in paid),
            reasoning=sum(usage.reasoning for usage in paid),
            cost=sum(costs) if len(costs) == len(paid) else None,
            currency=paid[-1].currency,
        )


def _price(session: Session, call: _Call) -> Price | None:
    """What the call costs: gaps and questions may be another model's."""
    provider = session.provider
    model = provider.settings.facts.get("fim_model") if call.purpose == "infill" else None
    if call.model and call.model != session.state.model:
        model = call.model
    return price_of(provider.name, provider.settings, str(model)) if model else provider.model.price


def _reserve(session: Session, size: int, max_tokens: int, price: Price | None) -> BudgetReserved:
    """Room for the call. Raises ToolError where the budget has none."""
    budget, state, provider = session.budget, session.state, session.provider
    prompt = int(size * state.tokens_per_byte)
    money = None if price is None else worst_case(price, prompt, max_tokens)
    try:
        known = price is not None or (provider.model.price is None and price_known(provider))
        if budget.bounds_money and not known:
            raise BudgetExceeded(
                unknown_price(state.provider, str(provider.settings.facts.get("fim_model", state.model)))
            )
        return budget.reserve(state.requests + 1, prompt + max_tokens, money)
    except BudgetExceeded as over:
        raise QuestionFailed(
            "not_available", f"the budget has no room for this model call: {over}.", "budget"
        ) from None


def _settle(session: Session, reserved: BudgetReserved, usage: Usage | None, free: bool) -> None:
    """Pay for the call: by the provider's count, without one by what was held, unless it came to nothing."""
    budget = session.budget
    reported = (UsageReported(reserved.request, usage),) if usage is not None else ()
    session.emit(*reported, budget.settle(reserved, Usage() if free else usage))
    for nearing in budget.warnings():
        session.notice("warning", nearing.text, f"budget_{nearing.percent}")


def _no_image(image: Image) -> bytes:
    raise KeyError(image.artifact)
