"""Sessions whose model is shown every tool from the start."""

from pathlib import Path

from codewhale.catalog.lifecycle import ACTIVE
from codewhale.catalog.registry import Catalog


def know_every_tool(home: Path) -> None:
    """Let every deferred tool join the head; the configuration must not have a table of tools yet."""
    names = [f'"{name}"' for name in Catalog.load().names() if name not in ACTIVE]
    with open(home / "config.toml", "a") as file:
        file.write(f"[tools]\nalways_load = [{', '.join(names)}]\n")
