"""One model call: room for it reserved, the request sent and recorded, its answer collected, its cost settled."""

from codewhale.engine.budget import Budget
from codewhale.engine.collect import Answer, Collector
from codewhale.engine.session import Session
from codewhale.protocol.events import BudgetReserved, RequestSent, UsageReported
from codewhale.providers.base import RequestOptions

_OUTPUT_ESTIMATE = 1024


class ModelCalls:
    """The model calls of one turn, one after another."""

    def __init__(self, session: Session, budget: Budget) -> None:
        self._session = session
        self._budget = budget
        self._collector: Collector | None = None
        self._reserved: BudgetReserved | None = None

    async def ask(self, *, purpose: str = "", extra: str = "", max_tokens: int = 0) -> Answer:
        """The model's answer to the conversation as it stands. A call with a `purpose` is made beside it: `extra` is
        its last word, and its answer is the caller's to keep. `max_tokens` 0 is the model's own bound. Raises
        BudgetExceeded before anything is sent."""
        session, state = self._session, self._session.state
        provider, projection, header = session.provider, session.projection, state.header
        assert provider is not None and projection is not None and header is not None
        options = RequestOptions(max_tokens or provider.model.max_output, session.request_effort)
        body, sha, messages = projection.request(header, options, extra)
        number = state.requests + 1
        estimate = int(len(body) * state.tokens_per_byte) + _OUTPUT_ESTIMATE
        self._reserved = self._budget.reserve(number, estimate, None)
        sent = RequestSent(
            request=number,
            bytes=len(body),
            sha256=sha,
            messages=messages,
            max_tokens=options.max_tokens,
            effort=options.effort,
            purpose=purpose,
            extra=extra,
        )
        session.emit(self._reserved, sent)
        self._collector = Collector(session.emit)
        session.waiting_for = f"the model ({purpose})" if purpose else "the model"
        answer = await self._collector.read(provider.stream(body))
        session.waiting_for = ""
        self._collector = None
        self._settle(answer)
        return answer

    def salvage(self) -> Answer | None:
        """After a cancellation: what had come of a call that was under way, its cost settled; None without one."""
        if self._collector is None:
            return None
        answer = self._collector.answer()
        self._collector = None
        self._settle(answer)
        return answer

    def _settle(self, answer: Answer) -> None:
        if self._reserved is None:
            return
        reserved, self._reserved = self._reserved, None
        if answer.usage is not None:
            self._session.emit(UsageReported(reserved.request, answer.usage))
        self._session.emit(self._budget.settle(reserved, answer.usage))
