"""One-shot model calls beside the conversation, for tools. Nothing of them joins it; each is recorded whole, and paid
from the session's budget."""

import asyncio
import hashlib
from collections.abc import Callable

from codewhale.agent.collect import Collector, ModelAnswer
from codewhale.agent.model_call import NOT_BEGUN, price_known, unknown_price
from codewhale.agent.titles import MOST_TOKENS
from codewhale.agent.turn import Turn
from codewhale.models.dialects.base import Price, Provider, RequestOptions
from codewhale.models.fim import SHAPES, fim_request, nearest
from codewhale.models.prices import price_of
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import AnswerDropped, BudgetReserved, Event, RequestSent, RetryCountdown, UsageReported
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.ports import Infilled
from codewhale.protocol.stream import Retrying, Usage
from codewhale.session.accounting import priced, worst_case
from codewhale.session.budget import BudgetExceeded
from codewhale.session.redaction import Redactor
from codewhale.session.session import Session

_CALL_SECONDS = 600.0


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
        return (await self._ask(turn.session, provider, body, purpose, max_tokens)).text

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
            answer = await self._ask(target, carrier, body, "infill", max_tokens)
        finally:
            if carrier is not provider:
                await carrier.aclose()
        return Infilled(answer.text, answer.finish == "length", max(0, left_out))

    async def _ask(
        self, session: Session, carrier: Provider, body: bytes, purpose: str, max_tokens: int
    ) -> ModelAnswer:
        price = _price(session, purpose)
        reserved = _reserve(session, len(body), max_tokens, price)
        sent = RequestSent(
            request=reserved.request,
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            messages=0,
            max_tokens=max_tokens,
            purpose=purpose,
            extra=body.decode(),
        )
        try:
            session.emit(reserved, sent)
        except BaseException:
            session.budget.release(reserved)
            raise

        def tell(event: Event) -> None:
            if isinstance(event, RetryCountdown) and purpose != "title":
                session.emit(event)

        tries = _Tries(session, sent)
        collector = Collector(tell, asking=tries)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                await collector.read(carrier.stream(body))
        except TimeoutError:
            raise ToolError("timeout", f"the model did not answer within {_CALL_SECONDS:g} seconds.") from None
        finally:
            answer = collector.answer()
            failed = answer.failure
            free = failed is not None and not failed.started and failed.kind in NOT_BEGUN
            usage = tries.whole(answer.usage, price)
            _settle(session, reserved, usage, free)
        if failed is not None:
            raise ToolError("execution_failed", f"the model call failed: {failed.message}.")
        return answer


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


def _price(session: Session, purpose: str) -> Price | None:
    """What the call costs: gaps may be another model's to fill."""
    provider = session.provider
    model = provider.settings.facts.get("fim_model") if purpose == "infill" else None
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
        raise ToolError("not_available", f"the budget has no room for this model call: {over}.") from None


def _settle(session: Session, reserved: BudgetReserved, usage: Usage | None, free: bool) -> None:
    """Pay for the call: by the provider's count, without one by what was held, unless it came to nothing."""
    budget = session.budget
    if usage is not None:
        session.emit(UsageReported(reserved.request, usage))
    session.emit(budget.settle(reserved, Usage() if free else usage))
    for nearing in budget.warnings():
        session.notice("warning", nearing.text, f"budget_{nearing.percent}")


def _no_image(image: Image) -> bytes:
    raise KeyError(image.artifact)
