"""More rights for a call that the sandbox refused something: offered where they could help and may be had."""

import pytest

from codewhale.agent.authorize import ELEVATION
from codewhale.agent.tool_calls import _wider
from codewhale.protocol.decisions import Decision
from codewhale.protocol.tools import SandboxRefusal, ToolResult

NETWORK = SandboxRefusal("network", "connect: Network is unreachable")
WRITE = SandboxRefusal("write", "touch: Read-only file system")


def decision(sandbox: str, *allowances: str) -> Decision:
    return Decision("allow", "rule", "", sandbox, allowances)


@pytest.mark.parametrize(
    ("denial", "before", "sandbox", "allowances"),
    [
        (NETWORK, decision("workspace-write"), "workspace-write", ("network",)),
        (NETWORK, decision("read-only", "write:/x"), "read-only", ("write:/x", "network")),
        (NETWORK, decision("workspace-write", "network"), "none", ()),
        (WRITE, decision("workspace-write"), "none", ()),
        (WRITE, decision("workspace-write", "offline"), "none", ()),
    ],
)
def test_what_is_offered_is_the_least_that_could_help(
    denial: SandboxRefusal, before: Decision, sandbox: str, allowances: tuple[str, ...]
) -> None:
    offered = _wider(ToolResult("", updates=(denial,)), before)
    assert offered is not None and (offered.verdict, offered.rule) == ("ask", ELEVATION)
    assert (offered.sandbox, offered.allowances) == (sandbox, allowances) and denial.evidence in offered.reason


@pytest.mark.parametrize(
    ("denial", "before"),
    [
        (NETWORK, decision("workspace-write", "offline")),
        (NETWORK, decision("none")),
        (WRITE, decision("none")),
        (None, decision("workspace-write")),
    ],
)
def test_nothing_is_offered_where_it_was_ruled_out_or_nothing_held_the_call(
    denial: SandboxRefusal | None, before: Decision
) -> None:
    assert _wider(ToolResult("", updates=() if denial is None else (denial,)), before) is None
