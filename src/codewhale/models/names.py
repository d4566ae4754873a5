"""Providers and models by name, for completion: what is configured and what is known. Nothing heavy is imported."""

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

READ_LIMIT = 1 << 20


def provider_names(home: Path) -> Iterable[tuple[str, str]]:
    """The configured providers, then those that are known, each with what it is."""
    configured, known = _config(home).get("providers", {}), _beside("known.json")["providers"]
    rows = dict.fromkeys(configured, "configured") if isinstance(configured, dict) else {}
    return [*rows.items(), *((name, row.get("base_url", "")) for name, row in known.items() if name not in rows)]


def model_names(home: Path, used: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Models that were configured or used, then those that are known by their whole name."""
    rows = {str(_config(home).get("model", "")): "configured"}
    rows |= {name: "used" for name in used if name not in rows}
    for name, row in _beside("known.json")["providers"].items():
        rows.setdefault(row.get("default_model", ""), name)
    for price in _beside("prices.json"):
        for pattern in price["match"].split():
            rows.setdefault("" if re.search(r"[*?[]", pattern) else pattern, " ".join(price.get("providers", ())))
    return [row for row in rows.items() if row[0]]


def _beside(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_bytes())


def _config(home: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((home / "config.toml").read_bytes()[:READ_LIMIT].decode())
    except (OSError, ValueError):
        return {}
