"""Declaring a tool: what the decorator keeps, and the schema made of an argument struct."""

from typing import Annotated, Literal

import pytest
from msgspec import Struct

from codewhale.protocol.tools import CallContext, Effect, PathSubject, Preview, ToolResult
from codewhale.tools.base import Args, Doc, bound, declared, gated, schema, specs, tool


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One item."""

    label: Annotated[str, Doc("What it is called.")]


class Sample(Args, frozen=True):
    """Arguments of the sample."""

    path: Annotated[str, Doc("Where.", min_length=1)]
    count: Annotated[int, Doc("How many.", ge=1, le=500)] | None = None
    kind: Annotated[Literal["b", "a"], Doc("Which.")] = "a"
    items: Annotated[tuple[Item, ...], Doc("What.", max_length=3)] = ()


class SampleTools:
    """A family of one."""

    @tool("sample", effects=[Effect.READS], subjects=lambda args: (PathSubject(args.path),), parallel=True)
    async def sample(self, args: Sample, call: CallContext) -> ToolResult:
        """Sample
        things."""
        return ToolResult(args.path)


class SilentTools:
    """A family whose tool says nothing of itself."""

    @tool("silent", effects=[])
    async def silent(self, args: Sample, call: CallContext) -> ToolResult:
        return ToolResult("")


def test_schema_is_flat_and_canonical() -> None:
    assert schema(Sample) == {
        "additionalProperties": False,
        "properties": {
            "path": {"description": "Where.", "minLength": 1, "type": "string"},
            "count": {"description": "How many.", "maximum": 500, "minimum": 1, "type": "integer"},
            "kind": {"default": "a", "description": "Which.", "enum": ["a", "b"], "type": "string"},
            "items": {
                "description": "What.",
                "items": {
                    "additionalProperties": False,
                    "description": "One item.",
                    "properties": {"label": {"description": "What it is called.", "type": "string"}},
                    "required": ["label"],
                    "type": "object",
                },
                "maxItems": 3,
                "type": "array",
            },
        },
        "required": ["path"],
        "type": "object",
    }


def test_a_row_says_everything_without_the_class() -> None:
    (row,) = specs(SampleTools, "sample_family")
    assert (row.name, row.family, row.description) == ("sample", "sample_family", "Sample things.")
    assert row.effects == (Effect.READS,) and row.parallel and not row.polls


class CarefulTools:
    """One that shows what it will do, where the provider can."""

    @gated("fim")
    @tool("careful", effects={Effect.WRITES})
    async def careful(self, args: Sample, call: CallContext) -> Preview:
        """Be careful."""
        raise NotImplementedError


def test_a_row_says_what_is_shown_first_and_what_a_provider_must_have() -> None:
    (row,) = specs(CarefulTools, "family")
    assert (row.previews, row.gate) == (True, "fim")
    (row,) = specs(SampleTools, "family")
    assert (row.previews, row.gate) == (False, "")


def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(ValueError, match="silent"):
        specs(SilentTools, "silent_family")


async def test_a_bound_tool_runs_its_method(call_context: CallContext) -> None:
    found = bound(SampleTools())["sample"]
    result = await found.run(Sample("here"), call_context)
    assert result.content == "here"
    assert found.decl.subjects(Sample("here")) == (PathSubject("here"),)
    assert set(declared(SampleTools)) == {"sample"}


@pytest.fixture
def call_context() -> CallContext:
    from codewhale.protocol.modes import Mode

    return CallContext("call_1", "session", "/", Mode.AGENT, lambda text: None, lambda: False)
