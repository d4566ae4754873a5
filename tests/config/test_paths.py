"""Where the state directory is."""

import os
from pathlib import Path

import pytest

from codewhale.config import Project, config_file, home_dir, load, project_file, refuse_unusable
from codewhale.protocol.errors import ConfigError


def test_the_default_is_below_home() -> None:
    assert home_dir({"HOME": "/h"}) == "/h/.codewhale"
    assert home_dir({"HOME": "/h", "CODEWHALE_HOME": ""}) == "/h/.codewhale"


def test_codewhale_home_wins_and_becomes_absolute() -> None:
    assert home_dir({"HOME": "/h", "CODEWHALE_HOME": "/x/../y/"}) == "/y"
    assert home_dir({"HOME": "/h", "CODEWHALE_HOME": "~/cw"}) == "/h/cw"
    assert home_dir({"HOME": "/h", "CODEWHALE_HOME": "rel"}) == os.path.join(os.getcwd(), "rel")


def test_a_home_that_cannot_be_told_is_an_error() -> None:
    with pytest.raises(ConfigError, match="set HOME or CODEWHALE_HOME"):
        home_dir({"HOME": "relative"})
    with pytest.raises(ConfigError, match="NUL"):
        home_dir({"CODEWHALE_HOME": "a\0b"})


def test_file_names() -> None:
    assert config_file("/h/.codewhale") == "/h/.codewhale/config.toml"
    assert project_file("/w") == "/w/.codewhale/config.toml"


def test_a_home_that_is_no_directory_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home, reason in ((tmp_path / "file", "it is not a directory"), (tmp_path / "file" / "x", "its path is a file")):
        with pytest.raises(ConfigError, match=rf"{home} cannot be the state.*{reason}; set CODEWHALE_HOME"):
            refuse_unusable(str(home))
    refuse_unusable(str(tmp_path / "absent" / "x"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_of_another_user_is_not_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('provider = "theirs"')
    os.chown(home, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to user 12345, not to you"):
        load(str(home), str(tmp_path), {}, {}, Project(lambda path, sha256: True, {}))
