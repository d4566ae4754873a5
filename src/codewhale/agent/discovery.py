"""Looking into the catalog for one session: what fits a need, what of it the session may use, and why not the rest."""

import re
from collections.abc import Callable
from typing import Protocol

from codewhale.agent.activation import is_known
from codewhale.agent.authorize import decision_request
from codewhale.catalog.lifecycle import MODEL_GATES, NOT_YET, PROGRAMS, closed_gate
from codewhale.catalog.registry import Catalog
from codewhale.catalog.search import ToolIndex
from codewhale.process.programs import find_program, not_installed
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.errors import ToolError
from codewhale.protocol.ports import Findings, FoundTool
from codewhale.protocol.tools import ToolSpec
from codewhale.session.session import Session

_MOST_UNAVAILABLE = 4


class OtherTools(Protocol):
    """The tools that are not ours."""

    async def learn(self) -> None:
        """Wait, not for long, for those that are not known yet."""

    def note(self, tool: str) -> str:
        """What to say beside one of them; "" for nothing."""


class Discovery:
    """Implements CatalogView. `others` are what brings tools beside our own."""

    def __init__(
        self,
        catalog: Catalog,
        find_session: Callable[[str], Session],
        decide: Callable[[DecisionRequest], Decision],
        others: "OtherTools | None" = None,
    ) -> None:
        self._others = others
        self._catalog = catalog
        self._find_session = find_session
        self._decide = decide
        self._built: tuple[int, ToolIndex] | None = None

    def _index(self) -> ToolIndex:
        """The index of the catalog's present generation."""
        if self._built is None or self._built[0] != self._catalog.generation:
            self._built = self._catalog.generation, ToolIndex(self._catalog.rows.values())
        return self._built[1]

    def spec(self, name: str) -> ToolSpec | None:
        return self._catalog.spec(name)

    def names(self) -> tuple[str, ...]:
        return self._catalog.names()

    async def learn(self) -> None:
        if self._others is not None:
            await self._others.learn()

    def find(self, session: str, query: str, count: int, *, pattern: bool) -> Findings:
        here = self._find_session(session)
        ranked = self._ranked(query, count + _MOST_UNAVAILABLE, pattern)
        found: list[FoundTool] = []
        closed: list[tuple[str, str]] = []
        for spec in ranked:
            if len(found) == count:
                break
            why = self._lacks(here, spec)
            if not why:
                known = is_known(here.state, spec.name)
                note = self._others.note(spec.name) if spec.source and self._others is not None else ""
                found.append(FoundTool(spec.name, spec.description, spec.parameters, known, note))
            elif spec.name not in MODEL_GATES:
                closed.append((spec.name, why))
        promised = [name for name in sorted(NOT_YET) if _named(name, query, pattern)]
        closed += [(name, "It is not part of this version.") for name in promised]
        return Findings(tuple(found), tuple(closed[:_MOST_UNAVAILABLE]))

    def _ranked(self, query: str, count: int, pattern: bool) -> list[ToolSpec]:
        index = self._index()
        try:
            names = index.pattern(query, count) if pattern else [name for name, _ in index.words(query, count)]
        except ValueError as error:
            raise ToolError(
                "invalid_input", f"`query` is {error}.", field="query", expected="a regular expression", received=query
            ) from None
        return [self._catalog.rows[name] for name in names]

    def _lacks(self, session: Session, spec: ToolSpec) -> str:
        """Why a session cannot use a tool now, in words; "" where it can."""
        facts, state = session.provider.settings.facts, session.state
        lacking = closed_gate(spec.name, spec.gate, facts, state.model)
        if lacking:
            return f"It needs {lacking}, and {state.model} is not known to be one."
        program = PROGRAMS.get(spec.name, "")
        if program and find_program(program, state.workspace) is None:
            return not_installed(program)
        decision = self._decide(decision_request(session, spec, ()))
        return decision.reason if decision.verdict == "deny" else ""


def _named(name: str, query: str, pattern: bool) -> bool:
    """Whether a query speaks of a name: it holds all of its words, or finds it as an expression."""
    if not pattern:
        return set(name.split("_")) <= set(re.findall(r"[a-z]+", query.lower()))
    return query.lower() in name
