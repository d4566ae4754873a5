"""What a probe of a configured provider is turned into: lines of configuration that hold what was found."""

import json
import tomllib
from pathlib import Path

import pytest

from codewhale.app.settings import open_config
from codewhale.cli.offline.probe import probe_provider, save
from codewhale.protocol.errors import ConfigError

CALL = {"name": "get_weather", "arguments": {"city": "Paris"}}


def played(home: Path, *turns: object) -> None:
    script = home / "script.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    (home / "config.toml").write_text(
        f'# kept\n[providers."a.b"]\ndialect = "scripted"\nscript = "{script}"\n'
        '[providers."a.b".facts]\nimages = false\n'
    )


async def test_what_was_found_is_configuration(home: Path) -> None:
    played(home, {"text": "1"}, {"text": "1"}, {"calls": [CALL]}, {"text": "None."})
    report = await probe_provider(str(home), str(home), {}, "a.b", "", "")
    assert report.ok and report.key == "not needed"
    told = tomllib.loads(report.toml)["providers"]["a.b"]["facts"]
    assert told == {"calls_undeclared_tools": False, "parallel_calls": False, "tools": True}
    assert save(str(home), report) == str(home / "config.toml")
    saved = (home / "config.toml").read_text()
    assert saved.startswith("# kept\n")
    assert tomllib.loads(saved)["providers"]["a.b"]["facts"] == {"images": False, **told}
    open_config(str(home), str(home), {}, {})


async def test_nothing_found_is_nothing_to_save(home: Path) -> None:
    played(home, {"error": {"message": "closed", "kind": "auth"}})
    report = await probe_provider(str(home), str(home), {}, "a.b", "m", "")
    assert (report.ok, report.found.error, report.toml, report.model) == (False, "closed", "", "m")


async def test_a_missing_key_is_told_before_anything_is_dialled(home: Path) -> None:
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY is not set"):
        await probe_provider(str(home), str(home), {}, "deepseek", "", "")
