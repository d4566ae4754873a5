"""Layers of configuration over real files: precedence, origins, trust, and every kind of bad value."""

import hashlib
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from codewhale.config import Config, Project, load
from codewhale.config.tighten import chosen
from codewhale.protocol.errors import ConfigError


class Place(Struct, frozen=True, omit_defaults=True):
    url: str = ""
    api_key_env: str = ""
    window: int = 128
    verbose: bool = False
    headers: dict[str, str] = {}
    tags: list[str] = []


class Shape(Struct, frozen=True):
    provider: str = ""
    model: str = ""
    places: dict[str, Place] = {}
    limits: Place = Place()


def refuse(path: str, sha256: str) -> bool:
    return False


def read(
    tmp_path: Path,
    text: str | None = None,
    environ: dict[str, str] | None = None,
    overrides: dict[str, Any] | None = None,
    defaults: dict[str, Any] | None = None,
) -> Config:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    if text is not None:
        (home / "config.toml").write_text(text, encoding="utf-8")
    return load(str(home), str(tmp_path), environ or {}, overrides or {}, Project(refuse, {}), defaults)


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    defaults = {"provider": "a", "model": "m"}
    assert read(tmp_path, defaults=defaults).section("provider", str) == "a"
    text = 'provider = "b"'
    assert read(tmp_path, text, defaults=defaults).section("provider", str) == "b"
    environ = {"CODEWHALE_PROVIDER": "c"}
    assert read(tmp_path, text, environ, defaults=defaults).section("provider", str) == "c"
    last = read(tmp_path, text, environ, {"provider": "d"}, defaults)
    assert last.section("provider", str) == "d"
    assert last.get("provider") == "d"
    assert last.section("model", str) == "m"


def test_each_value_knows_its_origin(tmp_path: Path) -> None:
    environ = {"CODEWHALE_PLACES_FAR_AWAY_WINDOW": "5"}
    config = read(tmp_path, '[places.far-away]\nurl = "x"\n', environ, {"model": "m"}, {"provider": "p"})
    origins = {entry.key: entry.origin for entry in config.entries(Shape)}
    assert origins["provider"] == "default"
    assert origins["model"] == "command line"
    assert origins["places.far-away.url"] == str(tmp_path / "home" / "config.toml")
    assert origins["places.far-away.window"] == "environment CODEWHALE_PLACES_FAR_AWAY_WINDOW"
    assert origins["places.far-away.verbose"] == "default"
    assert config.origin("places.far-away.window") == "environment CODEWHALE_PLACES_FAR_AWAY_WINDOW"


def test_tables_join_and_lists_are_replaced(tmp_path: Path) -> None:
    defaults = {"places": {"a": {"url": "low", "tags": ["x", "y"]}, "b": {"window": 1}}}
    config = read(tmp_path, '[places.a]\ntags = ["z"]\n', defaults=defaults)
    places = config.section("places", dict[str, Place])
    assert places == {"a": Place(url="low", tags=["z"]), "b": Place(window=1)}


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("CODEWHALE_PLACES_A_URL", "http://h", "places.a.url", "http://h"),
        ("CODEWHALE_PLACES_A_URL", "12", "places.a.url", "12"),
        ("CODEWHALE_PLACES_A_WINDOW", "12", "places.a.window", 12),
        ("CODEWHALE_PLACES_A_VERBOSE", "true", "places.a.verbose", True),
        ("CODEWHALE_PLACES_A_TAGS", '["p","q"]', "places.a.tags", ["p", "q"]),
        ("CODEWHALE_PLACES_A_HEADERS_X_ID", "v", "places.a.headers.X-Id", "v"),
        ("CODEWHALE_PLACES_NEW_ONE_WINDOW", "3", "places.new_one.window", 3),
        ("CODEWHALE_LIMITS_API_KEY_ENV", "E", "limits.api_key_env", "E"),
    ],
)
def test_the_environment_reaches_every_key(tmp_path: Path, name: str, text: str, key: str, value: Any) -> None:
    config = read(tmp_path, '[places.a]\nurl = "u"\nheaders = {X-Id = "1"}\n', {name: text})
    found = {entry.key: entry.value for entry in config.entries(Shape)}
    assert found[key] == value
    assert not config.notices


def test_an_empty_variable_sets_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, 'provider = "a"', {"CODEWHALE_PROVIDER": ""}).section("provider", str) == "a"


def test_a_variable_that_does_not_fit_is_named(tmp_path: Path) -> None:
    config = read(tmp_path, environ={"CODEWHALE_LIMITS_WINDOW": "many"})
    with pytest.raises(ConfigError, match=r"CODEWHALE_LIMITS_WINDOW: limits\.window: must be a whole number.*\"many\""):
        config.section("limits", Place)


def test_an_absent_section_is_an_empty_one(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.section("limits", Place) == Place()
    assert config.section("places", dict[str, Place]) == {}
    assert config.get("nothing.here") is None
    assert config.origin("nothing.here") == "default"


@pytest.mark.parametrize(
    ("text", "key", "wanted", "came"),
    [
        ('[places.deep]\nwindow = "big"', "places.deep.window", "must be a whole number, not text", '"big"'),
        ("[places.deep]\nurl = 3", "places.deep.url", "must be text, not a whole number", "3"),
        ("places = 3", "places", "must be a table, not a whole number", "3"),
        ("[places]\ndeep = []", "places.deep", "must be a table, not a list", "[]"),
        ("[places.deep]\nheaders = {a = 1}", "places.deep.headers.a", "must be text, not a whole number", "1"),
        ('[places.deep]\ntags = ["a", 2]', "places.deep.tags.1", "must be text, not a whole number", "2"),
        ("[places.deep]\nwindow = 1979-05-27", "places.deep.window", "must be a whole number", "1979-05-27"),
        ("[places.deep]\nwindow = nan", "places.deep.window", "must be a whole number", "null"),
        ('[places."a.b"]\nwindow = true', 'places."a.b".window', "must be a whole number, not true or false", "true"),
    ],
)
def test_a_wrong_value_names_file_key_what_came_and_what_is_wanted(
    tmp_path: Path, text: str, key: str, wanted: str, came: str
) -> None:
    config = read(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.section("places", dict[str, Place])
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "home" / "config.toml") + ": " + key + ": ")
    assert wanted in message
    assert came in message


def test_a_value_that_is_none_of_a_few_is_answered_with_those(tmp_path: Path) -> None:
    class Choosing(Struct, frozen=True):
        profile: Literal["", "default", "compact"] = ""

    with pytest.raises(ConfigError, match=r'tools\.profile: must be one of "", "default", "compact"; it is "nope"'):
        read(tmp_path, '[tools]\nprofile = "nope"').section("tools", Choosing)


def test_a_secret_is_not_shown_in_errors_or_listings(tmp_path: Path) -> None:
    text = '[places.a]\nurl = "u"\napi_key_env = "NAME"\nheaders = {Authorization = "sk-1234", X-Key = "sk-99"}\n'
    config = read(tmp_path, text)
    lines = {entry.key: entry.shown for entry in config.entries(Shape)}
    assert lines["places.a.headers.Authorization"] == '"********"'
    assert lines["places.a.headers.X-Key"] == '"********"'
    assert lines["places.a.api_key_env"] == '"NAME"'
    broken = read(tmp_path, 'provider = "x"\n[places]\napi_key = "sk-4321"\n')
    with pytest.raises(ConfigError) as caught:
        broken.section("places", dict[str, Place])
    assert "sk-4321" not in str(caught.value)


def test_unknown_keys_are_told_with_the_closest_known_one(tmp_path: Path) -> None:
    config = read(tmp_path, 'modle = "m"\n[places.a]\nwindwo = 3\n[zzz]\nq = 1\n')
    notices = config.check(Shape)
    assert any("modle is not a known key and does nothing; did you mean model?" in line for line in notices)
    assert any("places.a.windwo" in line and "did you mean places.a.window?" in line for line in notices)
    assert any("zzz is not a known key and does nothing; known here: provider, model" in line for line in notices)
    assert len(notices) == 3
    assert len(config.check(Shape)) == 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"provider = ", "is not valid TOML"),
        (b'a = 1\na = 2\nb = "', "is not valid TOML"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (b"x" * (1 << 20) + b"yz", "is larger than"),
        (b"a = " + b"[" * 100_000, "is nested too deeply: more than 64 brackets are open at line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(str(home / "config.toml"))
    assert said in str(caught.value)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_bytes(b'\xef\xbb\xbfmodel = "m"\n')
    assert read(tmp_path).section("model", str) == "m"


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "home" / "config.toml"
    path.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match=r"not a regular file|Is a directory"):
        read(tmp_path)


def project(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / ".codewhale"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_bytes(data)


@pytest.mark.parametrize("data", [b'model = "evil"\nprovider = "evil"', b"\xff not toml ["])
def test_a_project_file_nobody_trusts_changes_nothing_and_is_told_once(tmp_path: Path, data: bytes) -> None:
    project(tmp_path, data)
    config = read(tmp_path, 'model = "mine"')
    assert config.section("model", str) == "mine"
    assert config.notices == [
        f"project configuration ignored: {tmp_path}/.codewhale/config.toml is not trusted (codewhale trust list)",
    ]


def test_trust_is_asked_for_the_very_bytes(tmp_path: Path) -> None:
    data = b'model = "project"\nprovider = "evil"\n[places.x]\nurl = "http://evil"\n'
    project(tmp_path, data)
    asked: list[tuple[str, str]] = []

    def trust(path: str, sha256: str) -> bool:
        asked.append((path, sha256))
        return sha256 == hashlib.sha256(data).hexdigest()

    home, rules = str(tmp_path / "home"), Project(trust, {"model": chosen})
    (tmp_path / "home").mkdir()
    config = load(home, str(tmp_path), {}, {}, rules, {"provider": "safe"})
    assert asked == [(f"{tmp_path}/.codewhale/config.toml", hashlib.sha256(data).hexdigest())]
    assert config.section("model", str) == "project"
    assert config.section("provider", str) == "safe"
    assert config.section("places", dict[str, Place]) == {}
    narrower = "a project can only restrict settings; ignored: places, provider"
    assert config.notices == [f"{tmp_path}/.codewhale/config.toml: {narrower}"]
    project(tmp_path, data + b"# changed\n")
    assert load(home, str(tmp_path), {}, {}, rules).section("model", str) == ""


def test_a_project_fifo_neither_hangs_nor_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / ".codewhale").mkdir()
    os.mkfifo(tmp_path / ".codewhale" / "config.toml")
    assert "not a regular file" in read(tmp_path).notices[0]


def test_a_workspace_env_file_is_never_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CODEWHALE_PROVIDER=evil\nCODEWHALE_HOME=/evil\n")
    assert read(tmp_path, defaults={"provider": "safe"}).section("provider", str) == "safe"
