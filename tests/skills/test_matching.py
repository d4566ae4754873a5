"""Which skills are offered for a message: the one that fits, and none where none does."""

import json
from pathlib import Path

import pytest

from codewhale.skills.matching import offered
from codewhale.skills.model import Activation, Skill


def read(file: str) -> tuple[tuple[Skill, ...], list[tuple[str, str]], list[str]]:
    """Skills, tasks with the skill that fits, and tasks that none fits."""
    data = json.loads(Path(__file__).with_name(file).read_text())
    skills = tuple(Skill(name, says, name, f"/{name}/SKILL.md") for name, says in dict(data["skills"]).items())
    return skills, data["tasks"], data["none"]


FILES = ("matching.json", "offers.json", "offers_held_out.json")
SKILLS, _, _ = read("matching.json")


def names(text: str, skills: tuple[Skill, ...] = SKILLS) -> list[str]:
    return [skill.name for skill in offered(text, skills)]


def test_the_data_are_large_enough() -> None:
    sizes = [(len(skills), len(tasks), len(none)) for skills, tasks, none in map(read, FILES)]
    assert sizes[:2] == [(40, 60, 30), (40, 60, 30)] and sizes[2][0] == 20 and sum(sizes[2][1:]) >= 30


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("file", FILES)
def test_the_right_skill_is_offered_and_a_wrong_one_seldom(file: str, half: int) -> None:
    skills, tasks, none = read(file)
    tasks, none = tasks[half::2], none[half::2]
    missed = [(text, right, names(text, skills)) for text, right in tasks if right not in names(text, skills)]
    misled = [row for row in missed if row[2]]
    needless = [(text, names(text, skills)) for text in none if names(text, skills)]
    assert len(missed) <= 0.1 * len(tasks), missed
    assert len(misled) + len(needless) <= 0.1 * (len(tasks) + len(none)), (misled, needless)
    assert all(len(names(text, skills)) <= 2 for text, _ in tasks)


@pytest.mark.parametrize("text", ["yes, go on", "pdf", "merge pdf", "docs/notes/contract.py", "ok do it like that"])
def test_a_message_that_says_next_to_nothing_gets_no_offer(text: str) -> None:
    assert names(text) == []


def test_an_offer_does_not_hang_on_how_many_skills_there_are() -> None:
    pdf = next(skill for skill in SKILLS if skill.name == "pdf")
    for few in ((pdf,), SKILLS[:2], SKILLS):
        assert names("merge these scans into one pdf", few) == ["pdf"]
        assert names("rename the function and add a test for it", few) == []


def test_what_a_skill_is_not_for_does_not_count() -> None:
    docx = Skill("docx", "Edit Word documents. Do NOT use for spreadsheets, PDFs or slides.", "p", "f")
    assert names("fix the formulas in the spreadsheet", (docx,)) == []
    assert names("put the minutes into a word document", (docx,)) == ["docx"]


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
