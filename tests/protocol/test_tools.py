"""Rows, subjects and results are data that survives JSON."""

import msgspec
import pytest

from codewhale.protocol.tools import Effect, Origin, Subject, ToolResult, ToolSpec
from support.samples import sample


@pytest.mark.parametrize("kind", [*Subject.__args__, ToolSpec, ToolResult], ids=lambda kind: kind.__name__)
def test_it_survives_json(kind: type) -> None:
    assert msgspec.json.decode(msgspec.json.encode(sample(kind)), type=kind) == sample(kind)


def test_a_result_is_fine_and_from_the_workspace_unless_it_says_otherwise() -> None:
    result = ToolResult("text")
    assert (result.ok, result.origin, result.changes, result.end_turn) == (True, Origin.WORKSPACE, (), False)


def test_effects_are_the_four_that_policy_knows() -> None:
    assert [str(effect) for effect in Effect] == ["reads", "writes", "executes", "network"]
