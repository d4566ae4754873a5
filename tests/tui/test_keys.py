"""The table of keys."""

import pytest

from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.errors import ConfigError
from codewhale.tui.keys import ACTIONS, TOGETHER, bindings, check_keys, clashes


def test_every_action_has_words_and_no_key_does_two_things() -> None:
    assert len({row.id for row in ACTIONS}) == len(ACTIONS)
    for language in LANGUAGES:
        words = Words(language)
        assert all(words(f"keys.{row.id}") for row in ACTIONS)
    assert {row.panel for row in ACTIONS} == {panel for group in TOGETHER for panel in group}
    assert clashes({}) == []
    rows = [row for row in bindings("composer") if not isinstance(row, tuple)]
    assert {row.id: row.action for row in rows}["composer.stash"] == "stash"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"composer.sendd": "ctrl+y"}, "did you mean 'composer.send'"),
        ({"composer.send": " "}, "has no key"),
        ({"composer.send": "ctrl+k"}, "would do both"),
        ({"approval.choose": "y"}, "writes a character"),
        ({"approval.next": "down,J"}, "writes a character"),
        ({"transcript.fold": "space"}, "writes a character"),
        ({"queue.drop": "slash"}, "writes a character"),
        ({"app.help": "shift+question_mark"}, "writes a character"),
    ],
)
def test_keys_that_cannot_be_are_refused(changed: dict[str, str], said: str) -> None:
    check_keys({"composer.send": "ctrl+y", "approval.choose": "f5,shift+enter", "jobs.stop": "x"})
    with pytest.raises(ConfigError, match=said):
        check_keys(changed)
