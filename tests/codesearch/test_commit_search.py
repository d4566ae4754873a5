"""Commits found by what they say and change."""

from pathlib import Path

import msgspec
import pytest

from codewhale.codesearch.history import find_commits, pull_request
from codewhale.codesearch.model import Commit
from codewhale.codesearch.render import render_commits
from support.searchtree import COMMITS, indexed


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Merge pull request #17 from sea/whale", 17),
        ("Close the store twice (#204)", 204),
        ("bpo-1: Close it (GH-55)", 55),
        ("Merge branch 'main' (#8)", 8),
        ("Fix #12 for good", None),
        ("(#1) begins", None),
        ("Big (#99999999999999)", None),
    ],
)
def test_pull_requests_are_read_from_subjects(subject: str, number: int | None) -> None:
    assert pull_request(subject) == number


def test_subjects_and_paths_answer(tmp_path: Path) -> None:
    _, reader = indexed(tmp_path)
    first = find_commits(reader, "forget the credentials").best[0]
    assert (first.subject, first.at) == (COMMITS[0].subject, "2023-11-14T22:18:20Z")
    assert set(first.matched) == {"forget", "credentials"}
    by_path = find_commits(reader, "rate limiter").best
    assert [one.subject for one in by_path] == ["Throttle noisy neighbours"]
    assert by_path[0].paths == ("src/net/rate_limiter.py", "README.md")
    nothing = find_commits(reader, "zebra")
    assert nothing == find_commits(reader, " ") == find_commits(reader, '"*(') and nothing.best == []
    assert nothing.hint.startswith(f"None of the {len(COMMITS)} indexed commits matches.")
    reader.close()


def test_an_answer_without_a_commit_says_why(tmp_path: Path) -> None:
    _, reader = indexed(tmp_path, [])
    nothing = find_commits(reader, "zebra")
    told = msgspec.json.decode(render_commits("zebra", nothing, ())[0])
    assert told["hint"] == nothing.hint and nothing.hint.startswith("There are no commits: the folder is not in a git")
    half = msgspec.json.decode(render_commits("zebra", nothing, ("The index is being built: 3 of 9 files.",))[0])
    assert "hint" not in half and half["notes"]  # of an index that is not whole yet it would not be true
    reader.close()


def test_answers_are_bounded_and_ordered(tmp_path: Path) -> None:
    paths = tuple(f"src/part_{number}.py" for number in range(20))
    many = [Commit(f"{number:040}", 1_700_000_000 - number, "Mend the whale " * 9, paths) for number in range(60)]
    _, reader = indexed(tmp_path, many)
    answer = find_commits(reader, "whale", 50)
    found = answer.best
    assert answer.hint == "" and len(found) == 50 and [one.sha for one in found] == sorted(one.sha for one in found)
    assert (len(found[0].paths), found[0].more_paths) == (8, 12)
    text, shown = render_commits("whale", answer, ())
    told = msgspec.json.decode(text)
    assert len(text.encode()) <= 8_000 and 0 < shown < 50 and told["left_out"] == f"{50 - shown} weaker commits"
    assert told["results"][0]["pull_request"] is None and "hint" not in told
    assert msgspec.json.decode(render_commits("x", None, ("There is no index yet.",))[0])["results"] == []
    reader.close()


def test_a_path_chooses_the_commits_that_changed_it(tmp_path: Path) -> None:
    commits = [
        Commit(f"{number:040}", 1_700_000_000 - number, subject, paths)
        for number, (subject, paths) in enumerate(
            (
                ("Speak of retry in net", ("docs/net.md",)),
                ("Wait longer", ("src/net/retry.py", "src/net/pool.py")),
                ("Retry twice", ("tests/test_retry.py",)),
                ("Begin", ("src/net/retry.py",)),
            )
        )
    ]
    _, reader = indexed(tmp_path, commits)

    def subjects(text: str) -> list[str]:
        return [one.subject for one in find_commits(reader, text).best]

    for text in ("src/net/retry.py", "./src/net/retry.py", "`retry.py`"):
        assert subjects(text) == ["Wait longer", "Begin"]
    assert subjects("src/net/ wait") == ["Wait longer", "Begin"]
    assert subjects("begin src/net/retry.py")[0] == "Begin"
    assert set(subjects("retry")) == {"Speak of retry in net", "Retry twice", "Wait longer", "Begin"}
    reader.close()
