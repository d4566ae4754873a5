"""Lazy construction by the table: each part is imported and built once, when first asked for, and closed in
the reverse order."""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from codewhale.app.table import COMMAND_FAMILIES, PARTS, TOOLS, Row, target
from codewhale.catalog.registry import Catalog
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import BoundCall, CallContext, PathSubject, Preview, ToolResult, ToolSpec
from codewhale.tools.base import BoundTool, bound

if TYPE_CHECKING:
    from codewhale.repair.face import Repair
    from codewhale.workspace.undo import Undo


class Parts:
    """The parts of one application. `given` are those built beforehand, `rows` say how the others are built beside
    those of the table. Implements the Toolbox of dispatch."""

    def __init__(self, given: Mapping[str, object], rows: Mapping[str, Row] = MappingProxyType({})) -> None:
        self._built: dict[str, object] = dict(given)
        self._rows = {**PARTS, **rows}
        self._opened: list[object] = []
        self._tools: dict[str, BoundTool] = {}
        self._touched: deque[tuple[str, str]] = deque(maxlen=500)

    def part(self, key: str) -> object:
        """The part of a key, built on first use."""
        if key not in self._built:
            self._built[key] = self._build(self._rows[key])
        return self._built[key]

    def give(self, key: str, part: object) -> None:
        """Put a part in its place before anything needs it."""
        self._built[key] = part

    def built(self, key: str) -> Any:
        """The part if it was ever needed, else None."""
        return self._built.get(key)

    def bind(self, spec: ToolSpec, arguments: dict[str, Any]) -> BoundCall:
        """The call of a catalog row's tool; its family is built on first use. Raises ToolError when the
        arguments do not fit."""
        if spec.source:
            return self._catalog().bind(spec, arguments)
        if spec.name not in self._tools:
            self._tools.update(bound(self._build(TOOLS[spec.family])))
        tool = self._tools[spec.name]
        try:
            args = msgspec.convert(arguments, tool.args, strict=True)
        except msgspec.ValidationError as error:
            raise ToolError("invalid_input", f"The arguments do not fit: {error}.", field="arguments") from None
        subjects = tool.decl.subjects(args)
        paths = [subject.path for subject in subjects if isinstance(subject, PathSubject)]

        async def run(call: CallContext) -> ToolResult | Preview:
            done = await tool.run(args, call)
            if paths and not (isinstance(done, ToolResult) and not done.ok):
                self._touched.extend((call.workspace, path) for path in paths)
            return done

        return BoundCall(subjects, run, lambda workspace: tool.decl.outline(args, workspace))

    def touched(self, workspace: str) -> list[str]:
        """The paths that calls have looked at or changed in a workspace since this was last asked, the last 500."""
        found = [path for place, path in self._touched if place == workspace]
        others = [row for row in self._touched if row[0] != workspace]
        self._touched.clear()
        self._touched.extend(others)
        return found

    def spec(self, name: str) -> ToolSpec | None:
        """The catalog row of a canonical name, or None."""
        return self._catalog().spec(name)

    def _catalog(self) -> Catalog:
        catalog: Catalog = self.part("catalog")  # type: ignore[assignment]
        return catalog

    def changed_files(self, session: str, call_id: str) -> bool:
        """Whether a call of a program that has ended was seen to change files of the workspace."""
        undo: Undo | None = self.built("undo")
        return undo is not None and undo.changed_files(session, call_id)

    def mender(self) -> "Repair":
        """What makes out damaged calls, built when the first is met."""
        mender: Repair = self.part("repair")  # type: ignore[assignment]
        return mender

    def commands(self, key: str) -> object:
        """A command family, built on first use."""
        place = f"commands.{key}"
        if place not in self._built:
            self._built[place] = self._build(COMMAND_FAMILIES[key])
        return self._built[place]

    def _build(self, row: Row) -> object:
        needs = [self.part(need) for need in row.needs]
        made: object = target(row)(*needs)
        if hasattr(made, "aclose"):
            self._opened.append(made)
        return made

    async def aclose(self) -> None:
        """Close what was built, last first."""
        while self._opened:
            await self._opened.pop().aclose()  # type: ignore[attr-defined]
