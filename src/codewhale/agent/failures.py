"""What a failed model call teaches, and what a person is told of it."""

from msgspec.structs import replace

from codewhale.agent.context import Quantities
from codewhale.protocol.stream import Failed
from codewhale.session.session import Session

_SHORTEST_ANSWER = 256


def adopt_window(session: Session, failure: Failed, used: int) -> bool:
    """Take what the server says it reads for the model's window. Whether a shorter answer is all that is needed: the
    request itself takes `used` tokens."""
    provider = session.provider
    assert provider is not None
    model = provider.model
    if 0 < failure.window < model.window:
        session.notice(
            "warning",
            f"The server reads {failure.window:,} tokens, not {model.window:,}: this is the model's window now. "
            f"To keep it, set providers.{provider.name}.context_window = {failure.window}.",
            "window_adopted",
        )
        model = replace(model, window=failure.window, window_source="reported")
    longest = max(_SHORTEST_ANSWER, model.window - used - used // 8 - _SHORTEST_ANSWER)
    shorter = longest < model.max_output and used < model.window * 3 // 4
    provider.model = replace(model, max_output=longest) if shorter else model
    return shorter


def explain(session: Session, failure: Failed, now: Quantities) -> str:
    """Why the turn ends, and what to do."""
    name = session.state.provider
    if failure.kind == "auth":
        remedy = f"Give it a valid key (codewhale login {name}), then /retry; codewhale provider test {name} tries it."
    elif failure.kind == "connect":
        remedy = f"Check that the server runs and its address is right (codewhale provider test {name}), then /retry."
    elif failure.kind == "context_length":
        remedy = _too_long(name, now)
    elif failure.kind == "quota":
        remedy = "Check the account with the provider."
    elif failure.retryable:
        remedy = "Nothing of the answer was run; /retry asks again." if failure.started else "/retry asks again."
    else:
        remedy = ""
    return f"The model call failed: {failure.message}{'' if failure.message.endswith('.') else '.'} {remedy}".rstrip()


def _too_long(name: str, now: Quantities) -> str:
    if now.used < now.spendable:
        return (
            f"By our count the request takes about {now.used:,} tokens of the model's {now.window:,}, so the server "
            f"may run with a smaller window, or refuse for another reason: set providers.{name}.context_window to what "
            "it reads, choose another model (/model), or start a new session."
        )
    return (
        "The conversation is longer than the model's window, also after it was shortened as far as it goes: say less "
        "at once, choose a model with a larger window (/model), or start a new session."
    )
