"""What modes and needs decide by themselves, without anybody's rules: for listings, and for replays that only read."""

from codewhale.permissions.floor import NOTHING_SPECIAL
from codewhale.permissions.paths import beneath
from codewhale.permissions.pipeline import Judges, Policy
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.tools import PathSubject


def decide(request: DecisionRequest, disabled: frozenset[str] = frozenset()) -> Decision:
    """Allow, ask or deny one call by mode, effects and authority; `disabled` tools are denied in every mode. A call
    with a command line is not for here."""
    return Policy(_BARE, disabled=disabled).decide(request)


def _named(subject: PathSubject, request: DecisionRequest) -> tuple[str, ...]:
    path = beneath(subject.path, request.workspace or "/")
    return () if path is None else (path,)


_BARE = Judges(
    url=lambda url: None,
    paths=_named,
    special=lambda request: NOTHING_SPECIAL,
    sandboxed=lambda: True,
    job=lambda session, job: None,
)
