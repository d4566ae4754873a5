"""Setting one key: comments stay, bad values change nothing, the file is private."""

import os
import stat
from pathlib import Path

import pytest
from msgspec import Struct

from codewhale.app.settings import Settings
from codewhale.config import config_file
from codewhale.config.edit import parse_key, set_value
from codewhale.protocol.errors import ConfigError


class Place(Struct, frozen=True):
    url: str = ""
    window: int = 128
    ratio: float = 0.5
    verbose: bool = False
    note: str | None = None
    headers: dict[str, str] = {}
    tags: list[str] = []


class Shape(Struct, frozen=True):
    provider: str = ""
    places: dict[str, Place] = {}


COMMENTED = """\
# mine, keep
provider = "a"   # why a

[places.x]
# the far one
url = 'http://x'
window = 1_000

[places.x.headers]
X-Id = "1"
"""


def home(tmp_path: Path, text: str = COMMENTED) -> str:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_everything_but_the_value_stays(tmp_path: Path) -> None:
    place = home(tmp_path)
    assert set_value(place, "provider", "b", Shape) == (("provider",), "b")
    assert set_value(place, "places.x.window", "2000", Shape)[1] == 2000
    text = Path(config_file(place)).read_text()
    assert text == COMMENTED.replace('"a"', '"b"').replace("1_000", "2000")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("places.new.url", "http://n", "http://n"),
        ("places.new.url", "true", "true"),
        ("places.new.url", "", ""),
        ('places."a.b".window', "7", 7),
        ("places.x.ratio", "1", 1.0),
        ("places.x.verbose", "true", True),
        ("places.x.note", "hä \u2028 ☃", "hä \u2028 ☃"),
        ("places.x.headers.X-New", "v", "v"),
        ("places.x.tags", '["a", "b"]', ["a", "b"]),
    ],
)
def test_values_take_the_type_of_their_key(tmp_path: Path, key: str, text: str, value: object) -> None:
    import tomllib

    place = home(tmp_path)
    set_value(place, key, text, Shape)
    tree: object = tomllib.loads(Path(config_file(place)).read_text())
    for part in parse_key(key):
        assert isinstance(tree, dict)
        tree = tree[part]
    assert tree == value
    assert Path(config_file(place)).read_text().startswith("# mine, keep")


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("places.x.window", "big", "must be a whole number, not text; it is 'big'; nothing was changed"),
        ("places.x.window", "1.5", "must be a whole number"),
        ("places.x.verbose", "maybe", "must be true or false"),
        ("places.x.tags", '["a", 1]', "must be a list"),
        ("places.x", "v", "is a table; set one value in it, such as places.x.url"),
        ("places", "v", "is a table"),
        ("provder", "v", "provder is not a known key; did you mean provider?"),
        ("places.x.windw", "1", "did you mean places.x.window?"),
        ("provider.x", "1", "provider is a value, not a table"),
        ("", "v", "is not a key"),
        ("a..b", "v", "is not a key"),
        ("places.x.url\n[evil]", "v", "is not a key"),
        ("provider", "a\0b", "NUL"),
    ],
)
def test_what_would_not_load_is_refused(tmp_path: Path, key: str, text: str, said: str) -> None:
    place = home(tmp_path)
    with pytest.raises(ConfigError) as caught:
        set_value(place, key, text, Shape)
    assert said in str(caught.value)
    assert Path(config_file(place)).read_text() == COMMENTED


def test_a_new_file_and_its_folder_are_private(tmp_path: Path) -> None:
    place = tmp_path / "new" / "home"
    before = os.umask(0)
    try:
        set_value(str(place), "provider", "p", Shape)
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "config.toml").stat().st_mode) == 0o600
    assert (place / "config.toml").read_text() == 'provider = "p"\n'
    assert [name.name for name in place.iterdir()] == ["config.toml"]


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(COMMENTED)
    place = tmp_path / "home"
    place.mkdir()
    (place / "config.toml").symlink_to(real)
    set_value(str(place), "provider", "b", Shape)
    assert (place / "config.toml").is_symlink()
    assert 'provider = "b"' in real.read_text()


def test_a_broken_file_is_not_touched(tmp_path: Path) -> None:
    place = home(tmp_path, "provider = ")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        set_value(place, "provider", "b", Shape)
    assert Path(config_file(place)).read_text() == "provider = "


def test_a_wrong_value_elsewhere_does_not_keep_one_from_repairing(tmp_path: Path) -> None:
    place = home(tmp_path, 'provider = 3\n[places.x]\nwindow = "bad"\n')
    set_value(place, "provider", "ok", Shape)
    set_value(place, "places.x.window", "5", Shape)
    with pytest.raises(ConfigError, match="cannot be set"):
        set_value(home(tmp_path, "places = 3\n"), "places.x.window", "5", Shape)


def test_a_table_written_on_one_line_can_be_extended(tmp_path: Path) -> None:
    place = home(tmp_path, 'places = {x = {url = "u"}}\n')
    set_value(place, "places.x.window", "5", Shape)
    set_value(place, "places.y.url", "v", Shape)
    assert Path(config_file(place)).read_text().count("\n") == 1


def test_a_state_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        set_value(str(tmp_path / "file"), "provider", "p", Shape)


def test_a_list_is_set_as_json(tmp_path: Path) -> None:
    home = tmp_path / "home"
    path, value = set_value(str(home), "tools.disabled", '["exec_shell", "note"]', Settings)
    assert (path, value) == (("tools", "disabled"), ["exec_shell", "note"])
    assert 'disabled = ["exec_shell", "note"]' in (home / "config.toml").read_text()
