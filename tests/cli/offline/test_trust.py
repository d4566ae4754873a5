"""Looking at, trusting and forgetting project files, without a command line."""

from pathlib import Path

import pytest

from codewhale.cli.offline.trust import forget, listed, trust, waiting
from codewhale.protocol.errors import ConfigError


def test_only_what_is_not_trusted_waits(home: Path, workspace: Path) -> None:
    where, state = str(workspace), str(home)
    folder = workspace / ".codewhale"
    folder.mkdir()
    (folder / "config.toml").write_text("")
    (folder / "permissions.toml").write_text("")
    assert [Path(item.path).name for item in waiting(state, where, ())] == ["config.toml", "permissions.toml"]
    trust(state, waiting(state, where, [".codewhale/config.toml"]))
    assert [(Path(row.path).name, row.state, bool(row.at)) for row in listed(state, where)] == [
        ("config.toml", "trusted", True),
        ("permissions.toml", "new", False),
    ]
    assert [Path(item.path).name for item in waiting(state, where, ())] == ["permissions.toml"]
    with pytest.raises(ConfigError, match=r"\.codewhale/config\.toml"):
        waiting(state, where, ["../other.toml"])
    assert forget(state, where, ()) == [str(folder / "config.toml")]
    assert forget(state, where, (str(folder / "config.toml"),)) == []
