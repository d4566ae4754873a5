"""What of a project's configuration holds."""

from typing import Any

import pytest

from codewhale.config.tighten import chosen, joined, ladder, tightened

RULES = {
    "model": chosen,
    "tools.disabled": joined,
    "approval": ladder("never", "suggest", "auto", default="suggest"),
}


@pytest.mark.parametrize(
    ("below", "wanted", "kept", "refused"),
    [
        ({}, {"model": "m"}, {"model": "m"}, []),
        ({}, {"model": 3}, {}, ["model"]),
        ({}, {"provider": "p", "providers": {"x": {"base_url": "u", "api_key": "k"}}}, {}, ["provider", "providers"]),
        ({}, {"tools": {"disabled": ["a"], "profile": "x"}}, {"tools": {"disabled": ["a"]}}, ["tools.profile"]),
        ({"tools": {"disabled": ["b"]}}, {"tools": {"disabled": ["a", "b"]}}, {"tools": {"disabled": ["b", "a"]}}, []),
        ({"tools": {"disabled": ["b"]}}, {"tools": {"disabled": []}}, {"tools": {"disabled": ["b"]}}, []),
        ({}, {"tools": {"disabled": "all"}}, {}, ["tools.disabled"]),
        ({}, {"tools": 3}, {}, ["tools"]),
        ({"approval": "auto"}, {"approval": "suggest"}, {"approval": "suggest"}, []),
        ({"approval": "never"}, {"approval": "suggest"}, {}, ["approval"]),
        ({}, {"approval": "auto"}, {}, ["approval"]),
        ({}, {"approval": "never"}, {"approval": "never"}, []),
        ({"approval": 7}, {"approval": "AUTO"}, {}, ["approval"]),
        ({}, {}, {}, []),
        ({}, {"hooks": {"hooks": [{"command": "x"}]}}, {}, ["hooks"]),
    ],
)
def test_only_what_is_narrower_holds(
    below: dict[str, Any], wanted: dict[str, Any], kept: dict[str, Any], refused: list[str]
) -> None:
    assert tightened(wanted, below, RULES) == (kept, refused)
