"""The names that a release is checked for."""

import json
import sys

import pytest

from codewhale.catalog.lifecycle import NOT_YET, state_of
from codewhale.cli.dispatch import COMMANDS
from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from smoke import DOORS, NOT_BUILT, PROMISED, RETIRED, wrong_names

LEFT = 0  # never raise it


def listed(*names: str) -> str:
    return json.dumps([{"name": name} for name in names])


def test_what_is_not_built_only_shrinks() -> None:
    assert NOT_BUILT <= PROMISED and len(NOT_BUILT) <= LEFT
    for name in PROMISED - NOT_BUILT:
        assert name not in NOT_YET and state_of(name) is not None, name


def test_each_command_is_run_from_a_release() -> None:
    assert set(COMMANDS) - {door.arguments[0] for door in DOORS} == set()


def test_missing_built_and_retired_names_are_faults() -> None:
    whole = sorted(PROMISED - NOT_BUILT)
    assert wrong_names(listed(*whole)) == []
    assert wrong_names(listed(*whole[1:])) == [f"{whole[0]} is not listed"]
    for name in sorted(NOT_BUILT):
        assert wrong_names(listed(*whole, name)) == [f"{name} is built: take it off NOT_BUILT"]


@pytest.mark.parametrize("name", RETIRED)
def test_retired_names_are_not_listed(name: str) -> None:
    assert wrong_names(listed(*(PROMISED - NOT_BUILT), name)) == [f"{name} is retired"]
