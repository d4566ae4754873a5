"""The catalog as programs and people ask for it: every name with its row, and the head's exact bytes."""

from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.lifecycle import ALIASES, DEFAULT_PROFILE, MODEL_GATES, PROFILES, closed_gate, state_of
from codewhale.catalog.registry import Catalog
from codewhale.models.build import build_dialect
from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.known_models import load_known, resolve_model
from codewhale.permissions.policy import decide
from codewhale.process.repository import find_root
from codewhale.protocol.decisions import DecisionRequest
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import ToolSpec
from codewhale.session.prompt import load_instructions, system_text


class View(Struct, frozen=True):
    """Whose tools are asked for: a profile ("" is the provider's, else the default one), and a provider and a model
    among those that are known without configuration ("" is any)."""

    profile: str = ""
    provider: str = ""
    model: str = ""

    def settings(self, dialect: str = "") -> ProviderSettings:
        """The provider's dialect and facts for the model. Raises ConfigError for a provider that is not known."""
        row = load_known().providers.get(self.provider)
        if self.provider and row is None:
            raise ConfigError(f"there is no provider {self.provider!r} known without configuration")
        own = row.dialect if row is not None else "openai-chat"
        if row is None:
            return ProviderSettings(dialect=dialect or own)
        settings, _ = resolve_model(self.provider, ProviderSettings(dialect=own, base_url=row.base_url), self.model)
        return msgspec.structs.replace(settings, dialect=dialect or own)

    def head(self, catalog: Catalog) -> tuple[ToolSpec, ...]:
        """The rows of the array. Raises ConfigError for a profile that there is not."""
        profile = self.profile or str(self.settings().facts.get("tool_profile", DEFAULT_PROFILE))
        if profile not in PROFILES:
            raise ConfigError(f"there is no tool profile {profile!r}; it is one of {', '.join(PROFILES)}")
        return catalog.head_of(profile)


ANY = View()


def tools_head(dialect: str = "", view: View = ANY) -> str:
    """The `tools` value exactly as a dialect sends it, "" being the provider's own. Raises ConfigError for what is not
    known."""
    settings = view.settings(dialect)
    return build_dialect(view.provider or settings.dialect, settings).tools_json(view.head(Catalog.load()))


def system_head(home: str, workspace: str, view: View = ANY) -> str:
    """The system text exactly as it would be sent for a workspace. Raises ConfigError for what is not known."""
    shown = {row.name for row in view.head(Catalog.load())}
    return system_text(shown, load_instructions(workspace, home, find_root(workspace)))


def tools_list(mode: Mode, view: View = ANY) -> list[dict[str, Any]]:
    """A row for every name, aliases included; `approval` is what a person would be asked in this mode, `gate` what the
    tool needs of a provider or model, and `open` whether the one asked about has it. Raises ConfigError."""
    catalog = Catalog.load()
    head = {row.name: row for row in view.head(catalog)}
    facts = view.settings().facts
    named = {**catalog.rows, **{name: row for name, row in head.items() if name not in catalog.rows}}
    rows = [_row(name, spec, mode, head.get(name)) for name, spec in named.items()]
    for alias in ALIASES:
        found = catalog.resolve(alias)
        if found is not None:
            rows.append(_row(alias, found.spec, mode, None))
    for row in rows:
        spec = named[row["canonical"]]
        row["open"] = not closed_gate(spec.name, spec.gate, facts, view.model)
    return sorted(rows, key=lambda row: str(row["name"]))


def _row(name: str, spec: ToolSpec, mode: Mode, shown: ToolSpec | None) -> dict[str, Any]:
    alias = ALIASES.get(name)
    asked = DecisionRequest(spec.name, spec.effects, (), mode, Authority.PERSON, "", unseen=spec.previews)
    body = [] if shown is None else [shown.name, shown.description, shown.parameters]
    return {
        "name": name,
        "canonical": spec.name,
        "state": state_of(name) or "active",
        "in_head": shown is not None,
        "effects": list(spec.effects),
        "parallel": spec.parallel,
        "approval": decide(asked).verdict,
        "gate": spec.gate or " ".join(MODEL_GATES.get(spec.name, ())) or None,
        "since": alias.since if alias else None,
        "removal": alias.removal if alias else None,
        "bytes": len(msgspec.json.encode(body)) if body else 0,
        "schema": spec.parameters,
    }
