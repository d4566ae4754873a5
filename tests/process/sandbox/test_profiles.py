"""Profiles and allowances by name."""

import pytest

from codewhale.process.sandbox.profiles import Confinement, beneath, parse_profile


def test_names_become_what_they_stand_for() -> None:
    assert parse_profile("read-only") == Confinement()
    wanted = parse_profile("workspace-write", ["network", "cache:npm", "write:/srv/data", "read:/srv"])
    assert wanted == Confinement(True, True, ("npm",), ("/srv/data",), ("/srv",))


def test_what_makes_it_narrower_is_known_too() -> None:
    wanted = parse_profile("read-only", ["network", "hide:/secret", "offline"])
    assert wanted == Confinement(hidden=("/secret",))


@pytest.mark.parametrize(
    ("profile", "allowance"),
    [
        ("isolated", "network"),
        ("isolated", "write:/srv"),
        ("isolated", "home:toolchains"),
        ("isolated", "read:a"),
        ("all", "network"),
        ("none", "network"),
        ("read-only", "net"),
        ("read-only", "cache:x"),
        ("read-only", "write:a"),
    ],
)
def test_what_is_not_known_is_told_with_what_is(profile: str, allowance: str) -> None:
    with pytest.raises(ValueError, match="it is one of"):
        parse_profile(profile, [allowance])


def test_the_isolated_profile_is_given_places_to_read_alone() -> None:
    assert parse_profile("isolated", ["read:/srv/a b"]) == Confinement(seen=("/srv/a b",), isolated=True)


def test_a_name_that_begins_alike_is_not_beneath() -> None:
    assert beneath("/w", "/w") and beneath("/w/a", "/w") and beneath("/w", "/")
    assert not beneath("/w-evil", "/w") and not beneath("/", "/w")
