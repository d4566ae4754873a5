"""The table of keys."""

import pytest

from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.errors import ConfigError
from codewhale.tui.keys import ACTIONS, TOGETHER, bindings, check_keys, clashes, first_key, named_today


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


def test_a_former_id_in_a_persons_settings_still_names_its_action() -> None:
    own = named_today({"composer.complete_or_mode": "f9", "composer.send": "ctrl+y"})
    check_keys(own)
    assert (first_key("composer.complete", own), first_key("composer.send", own)) == ("f9", "ctrl+y")
    assert first_key("composer.mode", own) == "shift+tab" and first_key("composer.search_history", own) == "ctrl+r"
    assert named_today({"composer.complete_or_mode": "f9", "composer.complete": "f8"}) == {"composer.complete": "f8"}
