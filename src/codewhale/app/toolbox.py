"""Where running tools come from: a family is imported and built at its first call."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from codewhale.catalog.registry import Catalog
from codewhale.protocol.errors import ToolError
from codewhale.protocol.files import FileChange
from codewhale.protocol.tools import BoundCall, CallContext, PathSubject, Preview, ToolResult, ToolSpec
from codewhale.tools.base import BoundTool, bound

if TYPE_CHECKING:
    from codewhale.repair.repairer import CallRepairer


class Toolbox:
    """The tools of an application. `family(key)` builds those of a family of the catalog; `changed_files(session, call
    id)` are those that a call of a program that has ended was seen to change; `repairer()` makes out damaged
    calls."""

    def __init__(
        self,
        catalog: Catalog,
        family: Callable[[str], object],
        changed_files: Callable[[str, str], tuple[FileChange, ...]],
        repairer: "Callable[[], CallRepairer]",
    ) -> None:
        self.spec = catalog.spec
        self._catalog = catalog
        self.changed_files = changed_files
        self.repairer = repairer
        self._family = family
        self._tools: dict[str, BoundTool] = {}
        self._touched: deque[tuple[str, str]] = deque(maxlen=500)

    def bind(self, spec: ToolSpec, arguments: dict[str, object]) -> BoundCall:
        """The call of a catalog row's tool with these arguments. Raises ToolError when they do not fit."""
        if spec.source:
            return self._catalog.bind(spec, arguments)
        if spec.name not in self._tools:
            self._tools.update(bound(self._family(spec.family)))
        tool = self._tools[spec.name]
        try:
            args = msgspec.convert(arguments, tool.args, strict=True)
        except msgspec.ValidationError as error:
            raise ToolError("invalid_input", f"Invalid arguments: {error}.", field="arguments") from None
        subjects = tool.subjects(args)
        paths = [subject.path for subject in subjects if isinstance(subject, PathSubject)]

        async def run(call: CallContext) -> ToolResult | Preview:
            done = await tool.run(args, call)
            if paths and not (isinstance(done, ToolResult) and not done.ok):
                self._touched.extend((call.workspace, path) for path in paths)
            return done

        return BoundCall(subjects, run, lambda workspace: tool.decl.outline(args, workspace))

    def touched(self, workspace: str) -> list[str]:
        """The paths that calls have looked at or changed in a workspace since this was last asked, the last 500."""
        paths = [path for place, path in self._touched if place == workspace]
        others = [row for row in self._touched if row[0] != workspace]
        self._touched.clear()
        self._touched.extend(others)
        return paths
