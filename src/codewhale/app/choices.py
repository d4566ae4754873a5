"""What a person chose last: provider and model, and how hard to think, for each workspace and for all of them. A choice
stands above config.toml until that says something else than it did when the choice was made."""

import os
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from codewhale.config import Config
from codewhale.config.layers import DEFAULT
from codewhale.lib.clock import Clock, SystemClock
from codewhale.process.rowfile import RowFile, is_own
from codewhale.protocol.errors import ConfigError

MOST_WORKSPACES = 500
EVERYWHERE = "*"
ORIGINS = {EVERYWHERE: "your last choice", "": "your last choice in this workspace"}
ROUTE, EFFORT = ("provider", "model"), ("reasoning_effort",)


class LastChoice(Struct, frozen=True, omit_defaults=True):
    """A row: `over` is what config.toml said of the keys that were chosen, `at` when, in Unix seconds."""

    provider: str = ""
    model: str = ""
    reasoning_effort: str | None = None
    over: dict[str, Any] = {}
    at: float = 0.0


class Choices:
    """`choices.json` of a state directory, by the real path of the workspace."""

    def __init__(self, home: str, clock: Clock | None = None) -> None:
        self._home = home
        self._clock = clock or SystemClock()
        path = os.path.join(home, "choices.json")
        self._rows = RowFile(path, "choices", LastChoice, self._refuse_foreign, again="choose the model again")

    def keep(self, config: Config, workspace: str, **chosen: str) -> None:
        """Remember what was chosen in a workspace. Raises ConfigError, and then nothing has changed."""
        over = {key: _written(config, key) for key in chosen}
        root = os.path.realpath(workspace)
        with self._rows.changing(self._home) as rows:
            for name in (root, EVERYWHERE):
                former = rows.get(name, LastChoice())
                fields: dict[str, Any] = {**chosen, "over": former.over | over, "at": self._clock.now()}
                rows[name] = replace(former, **fields)
            for name in sorted(rows, key=lambda name: rows[name].at)[: -MOST_WORKSPACES - 1]:
                if name != EVERYWHERE:
                    del rows[name]

    def join(self, config: Config, workspace: str) -> None:
        """Put what was chosen for a workspace over config.toml; what cannot be read is a notice."""
        try:
            rows = self._rows.read()
        except ConfigError as error:
            config.notices.append(f"your last model choice cannot be used: {error}")
            return
        root = os.path.realpath(workspace)
        for name, origin in ((EVERYWHERE, ORIGINS[EVERYWHERE]), (root, ORIGINS[""])):
            if name in rows and (tree := _standing(rows[name], config)):
                config.choose(origin, tree)

    def _refuse_foreign(self, status: os.stat_result) -> None:
        if not is_own(status):
            raise ConfigError(f"{self._rows.path}: does not belong to you")


def _standing(row: LastChoice, config: Config) -> dict[str, Any]:
    """What of a choice still holds: neither config.toml nor where the provider stands above it has changed since."""
    tree: dict[str, Any] = {}
    route = all(row.over.get(key) == _written(config, key) for key in ROUTE)
    if row.provider and route and config.sources(("providers", row.provider)):
        above = [value for origin, value in config.sources(("provider",)) if origin not in _below(config)]
        if not above or above[-1] == row.provider:
            tree |= {"provider": row.provider, "model": row.model}
    if row.reasoning_effort is not None and row.over.get(*EFFORT) == _written(config, *EFFORT):
        tree["reasoning_effort"] = row.reasoning_effort
    return tree


def _below(config: Config) -> tuple[str, ...]:
    return (DEFAULT, config.path, *ORIGINS.values())


def _written(config: Config, key: str) -> Any:
    return dict(config.sources((key,))).get(config.path)
