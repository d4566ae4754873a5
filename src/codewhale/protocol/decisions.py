"""The question put to policy before a call runs, and its answer."""

from typing import Literal

from msgspec import Struct

from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect, Subject

Verdict = Literal["allow", "ask", "deny"]


class DecisionRequest(Struct, frozen=True):
    """A call about to run: all that policy may look at. `unseen`: what it will write does not stand in the call."""

    tool: str
    effects: tuple[Effect, ...]
    subjects: tuple[Subject, ...]
    mode: Mode
    authority: Authority
    session: str
    tainted: bool = False
    unseen: bool = False


class Decision(Struct, frozen=True):
    """Policy's answer. `rule` names what decided, `reason` is told to model and person alike, `sandbox` is
    the launch profile the call must run under."""

    verdict: Verdict
    rule: str
    reason: str
    sandbox: str = "none"
