"""Which skills are offered for a message: the one that fits, and none where none does."""

import json
from pathlib import Path

import pytest

from codewhale.skills.matching import offered
from codewhale.skills.model import Activation, Skill

DATA = json.loads(Path(__file__).with_name("matching.json").read_text())
SKILLS = tuple(Skill(name, says, name, f"/{name}/SKILL.md") for name, says in DATA["skills"].items())


def names(text: str, skills: tuple[Skill, ...] = SKILLS) -> list[str]:
    return [skill.name for skill in offered(text, skills)]


def test_the_data_are_large_enough() -> None:
    assert (len(SKILLS), len(DATA["tasks"])) == (40, 60) and len(DATA["none"]) >= 25


@pytest.mark.parametrize("half", [0, 1])
def test_the_right_skill_is_offered_and_a_wrong_one_seldom(half: int) -> None:
    tasks, none = DATA["tasks"][half::2], DATA["none"][half::2]
    missed = [(text, right, names(text)) for text, right in tasks if right not in names(text)]
    misled = [row for row in missed if row[2]]
    needless = [(text, names(text)) for text in none if names(text)]
    assert len(missed) <= 0.1 * len(tasks), missed
    assert len(misled) + len(needless) <= 0.1 * (len(tasks) + len(none)), (misled, needless)
    assert all(len(names(text)) <= 2 for text, _ in tasks)


def test_what_is_not_left_to_the_model_is_never_offered() -> None:
    for activation in (Activation.ALWAYS, Activation.GLOB, Activation.MANUAL):
        assert names("merge this pdf", (Skill("pdf", "Merge PDF files.", "p", "f", activation=activation),)) == []
    assert names("merge this pdf", (Skill("pdf", "Merge PDF files.", "p", "f"),)) == ["pdf"]


def test_at_most_two_are_offered_best_first() -> None:
    many = tuple(
        Skill(f"pdf-{word}", f"{word} pdf documents", "p", word) for word in ("sign", "stamp", "seal", "print")
    )
    assert names("seal the pdf documents", many)[0] == "pdf-seal" and len(names("sign and stamp the pdf", many)) == 2


@pytest.mark.parametrize(
    "text", ["", "   ", "???", "12345", "the and of", "x" * 100_000, "pdf " * 50_000, "\0", "。。。"]
)
def test_no_message_is_too_odd(text: str) -> None:
    assert len(offered(text, SKILLS)) <= 2 and offered(text, ()) == ()


def test_a_slip_of_the_fingers_finds_the_word_that_was_meant() -> None:
    assert names("the kuberntes thing hangs") == names("the kubernetes thing hangs") == ["kubernetes"]
