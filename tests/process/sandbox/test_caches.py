"""Package caches: private unless named."""

from pathlib import Path

from codewhale.process.sandbox.profiles import FAMILIES, cache_folders, private_caches


def test_an_opened_family_has_its_real_folders_where_they_are(tmp_path: Path) -> None:
    (tmp_path / ".npm").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert cache_folders(("npm",), str(tmp_path), {}) == (str(tmp_path / ".npm"),)
    assert cache_folders(("uv",), str(tmp_path), {"UV_CACHE_DIR": str(elsewhere)}) == (str(elsewhere),)
    assert cache_folders(tuple(FAMILIES), "", {"GOCACHE": "relative"}) == ()


def test_every_other_family_is_led_to_a_private_one() -> None:
    private = private_caches(("pip",), "/tmp/.cache")
    assert private["GOCACHE"] == "/tmp/.cache/go-build" and "PIP_CACHE_DIR" not in private
    assert set(private) == {name for key, family in FAMILIES.items() if key != "pip" for name in family.variables}
