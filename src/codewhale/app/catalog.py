"""The catalog as programs and people ask for it: every name with its row, and the head's exact bytes."""

from typing import Any

import msgspec

from codewhale.catalog.lifecycle import ALIASES, state_of
from codewhale.catalog.registry import Catalog
from codewhale.context.prompt import load_instructions, system_text
from codewhale.dialects.base import ProviderSettings
from codewhale.policy.decide import decide
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import ToolSpec
from codewhale.providers.build import build_dialect
from codewhale.system.repository import find_root


def tools_head(dialect: str) -> str:
    """The `tools` value exactly as a dialect sends it. Raises ConfigError for an unknown dialect."""
    return build_dialect(dialect, ProviderSettings(dialect=dialect)).tools_json(Catalog.load().head)


def system_head(home: str, workspace: str) -> str:
    """The system text exactly as it would be sent for a workspace."""
    return system_text(load_instructions(workspace, home, find_root(workspace)))


def tools_list(mode: Mode) -> list[dict[str, Any]]:
    """A row for every name, aliases included; `approval` is what a person would be asked in this mode."""
    catalog = Catalog.load()
    rows = [
        _row(spec.name, spec, mode, spec in catalog.head) for name in catalog.names() if (spec := catalog.spec(name))
    ]
    for alias in ALIASES:
        found = catalog.resolve(alias)
        if found is not None:
            rows.append(_row(alias, found.spec, mode, False))
    return sorted(rows, key=lambda row: str(row["name"]))


def _row(name: str, spec: ToolSpec, mode: Mode, in_head: bool) -> dict[str, Any]:
    alias = ALIASES.get(name)
    asked = DecisionRequest(spec.name, spec.effects, (), mode, Authority.PERSON, "", unseen=spec.previews)
    return {
        "name": name,
        "canonical": spec.name,
        "state": state_of(name),
        "in_head": in_head,
        "effects": list(spec.effects),
        "parallel": spec.parallel,
        "approval": decide(asked).verdict,
        "gate": spec.gate or None,
        "since": alias.since if alias else None,
        "removal": alias.removal if alias else None,
        "bytes": len(msgspec.json.encode([spec.name, spec.description, spec.parameters])) if in_head else 0,
        "schema": spec.parameters,
    }
