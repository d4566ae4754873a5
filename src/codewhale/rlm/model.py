"""What recursive sessions are made of: settings, bounds, and the frames that host and kernel send each other."""

from typing import Any, Literal

from msgspec import Struct

BATCH = 16  # sub-queries of one batch, and of all that run at once
WHOLE = 128  # of one message of sub_query_all
SESSIONS = 8  # kernels at once
MOST_QUERIES = 2_000  # of a session
PROMPT_CHARS = 400_000
CONTENT_CHARS = 200_000
IDLE_SECONDS = 1_800.0
MOST_DEPTH = 3


class RlmSettings(Struct, frozen=True):
    """What rlm_configure sets. `round_seconds` bounds one rlm_eval, `sub_query_timeout_secs` one question."""

    output_feedback: Literal["full", "metadata"] = "full"
    sub_query_timeout_secs: int = 120
    sub_rlm_max_depth: int = 1
    share_session: bool = False
    round_seconds: int = 180
    temperature: float | None = None
    max_tokens: int = 4096


class QueryLimits(Struct, frozen=True):
    """How many sub-queries a session and one of its rounds may ask."""

    session: int = 200
    round: int = 64


class KernelAsk(Struct, frozen=True):
    """Questions of the kernel, one a slot: over a byte span of the source, a text of the model's own, or nothing.
    `whole`: they are no batch of the model's, but part of all that it asks."""

    ask: int
    kind: Literal["query", "rlm"]
    spans: tuple[tuple[int, int] | str | None, ...]
    template: str | None = None
    prompts: tuple[str, ...] | None = None
    options: dict[str, Any] = {}
    whole: bool = False

    def prompt(self, slot: int) -> str:
        return self.prompts[slot] if self.prompts is not None else self.template or ""


class RoundOutput(Struct, frozen=True):
    """What a round printed: head and tail of it, of `bytes` in all."""

    text: str = ""
    bytes: int = 0


class NewVariable(Struct, frozen=True):
    name: str
    type: str
    size: int


class FinalValue(Struct, frozen=True):
    """One call of finalize; `coerced` where the value was none of JSON and became its text."""

    value: Any
    coerced: bool = False
    confidence: float | None = None


class CodeError(Struct, frozen=True):
    kind: str
    message: str
    traceback: str = ""


class RoundResult(Struct, frozen=True):
    """How a round ended, with the most memory (bytes) that the kernel has had, and may have, and how many threads of
    its code went on: that kernel serves no further round."""

    done: int
    error: CodeError | None = None
    stdout: RoundOutput = RoundOutput()
    stderr: RoundOutput = RoundOutput()
    new_vars: tuple[NewVariable, ...] = ()
    finals: tuple[FinalValue, ...] = ()
    memory: int = 0
    memory_max: int = 0
    threads: int = 0


class Answered(Struct, frozen=True):
    """A slot's answer; `error` is the kind of a failure, and then `text` says it in brackets."""

    text: str
    error: str = ""
    cached: bool = False


class Counts(Struct):
    """What a session has used: rounds, questions asked of a model, answers that were kept, seconds, and tokens."""

    rounds: int = 0
    queries: int = 0
    cached: int = 0
    failed: int = 0
    seconds: float = 0.0
    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    longest_prompt: int = 0
    variables: int = 0
