"""`codewhale search` as a person and as a script call it, good input and bad."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codewhale.codesearch.build import CodeIndex
from support.machine import RIPGREP
from support.patience import HANG
from support.program import codewhale_program, environment
from support.searchtree import planted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return planted(tmp_path)


def batch(home: Path, data: str | bytes, *more: str) -> tuple[int, list[Any], str]:
    """Exit code, answers and what was said of a batch over the tree."""
    stdin = data.encode() if isinstance(data, str) else data
    done = codewhale_program(home, "search", "--batch", "-w", "tree", *more, stdin=stdin)
    return done.returncode, [json.loads(line) for line in done.stdout.split("\n") if line], done.stderr


def test_one_question_for_people_and_for_scripts(tree: Path, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "search", "-w", "tree", "how are expired tokens refreshed")
    assert (done.returncode, done.stderr) == (0, "") and "src/auth/token_store.py:" in done.stdout.split("\n")[0]
    done = codewhale_program(tmp_path, "search", "-w", "tree", "--json", "--max-results", "2", "rate limiter")
    found = json.loads(done.stdout)
    assert [len(found["results"]), found["coverage"], done.returncode] == [2, 1.0, 0]
    assert {"backend", "fallback_grep_hits", "index_age_s"} <= set(found)
    assert {"path", "line", "end_line", "snippet", "score", "reasons"} <= set(found["results"][0])


def test_a_folder_inside_is_the_root(tree: Path, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "search", "-w", "tree/src/net", "--json", "rate limiter")
    assert json.loads(done.stdout)["results"][0]["path"] == "rate_limiter.py"


def test_a_batch_is_answered_in_order(tree: Path, tmp_path: Path) -> None:
    rows = [{"id": number, "query": query} for number, query in enumerate(["TokenStore", "retry", "TokenStore"])]
    code, found, said = batch(tmp_path, "\n".join(map(json.dumps, rows)), "--max-results", "1")
    assert (code, said, [row["id"] for row in found]) == (0, "", [0, 1, 2])
    assert found[0]["results"] == found[2]["results"] and len(found[0]["results"]) == 1
    assert batch(tmp_path, "") == (0, [], "")


def test_bad_lines_are_told_and_the_others_answered(tree: Path, tmp_path: Path) -> None:
    lines = [b"not json", b'{"id": 1}', b"\xff", b'{"id": 2, "query": "TokenStore"}', b"[]", b'{"query": 5}']
    code, found, _ = batch(tmp_path, b"\n".join(lines))
    assert (code, len(found)) == (1, 6) and found[3]["results"]
    errors = [row for row in found if "error" in row]
    assert [row["line"] for row in errors] == [1, 2, 3, 5, 6]
    assert all(row["error"]["code"] == "bad_line" and row["error"]["message"] for row in errors)


def test_queries_of_any_letters_are_one_line_each(tree: Path, tmp_path: Path) -> None:
    queries = ["a\u2028TokenStore", "a\x85b", "", "  ", "\x0c", "тест 日本語", "x" * 100_000, "-e", "$(touch PWNED)"]
    lines = [json.dumps({"id": query[:9], "query": query}, ensure_ascii=False) for query in queries]
    code, found, said = batch(tmp_path, "\n".join(lines) + "\n")
    assert (code, said, [row["id"] for row in found]) == (0, "", [query[:9] for query in queries])
    assert found[0]["results"][0]["path"] == "src/auth/token_store.py" and found[2]["results"] == []


@pytest.mark.parametrize(
    "words",
    [
        (), ("",), ("  ",), ("x", "--batch"), ("x", "--max-results", "0"), ("x", "--max-results", "101"),
        ("x", "--max-results", "ten"), ("x", "--lang", "klingon"), ("x", "--kind", "walrus"),
        ("x", "--path-glob", "a" * 2000), ("x", "-w", "absent"), ("x", "-w", "tree/README.md"), ("x", "--no-such"),
    ],
)  # fmt: skip
def test_wrong_usage_is_told_in_a_sentence(words: tuple[str, ...], tree: Path, tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "search", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr and "Traceback" not in done.stderr and len(done.stderr) < 3000


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root needs setpriv to give up its powers"
)
def test_a_folder_that_cannot_be_read(tree: Path, tmp_path: Path) -> None:
    powerless = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    program = [*powerless, sys.executable, "-m", "codewhale", "search", "-w", "tree", "TokenStore"]
    tree.chmod(0)
    try:
        done = subprocess.run(
            program, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=60
        )
    finally:
        tree.chmod(0o700)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.startswith("codewhale search: -w tree: this folder cannot be read") and "\n" not in done.stderr[:-1]
    )


def test_a_home_that_cannot_be_written_fails_with_a_sentence(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = codewhale_program(
        tmp_path, "search", "-w", "tree", "TokenStore", env={"CODEWHALE_HOME": str(tmp_path / "file" / "home")}
    )
    assert done.returncode == 2 and done.stdout == "" and "cannot be the state directory" in done.stderr


@RIPGREP
def test_without_an_index_the_answer_is_from_names_and_text(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "config.toml").write_text("codebase-search-core = false\n")
    env = {"CODEWHALE_HOME": str(tmp_path / "state")}
    done = codewhale_program(tmp_path, "search", "-w", "tree", "--json", "TokenStore", env=env)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["backend"] == "path+text" and told["results"], done.stderr
    assert "codebase-search-core = false" in told["notes"][0] and not (tmp_path / "state" / "index").exists()
    done = codewhale_program(tmp_path, "symbols", "-w", "tree", "TokenStore", env=env)
    assert done.returncode == 1 and "codebase-search-core = false" in done.stderr


def test_a_damaged_index_is_made_anew(tree: Path, tmp_path: Path) -> None:
    first = batch(tmp_path, '{"query": "TokenStore"}')
    path = Path(CodeIndex(str(tree), str(tmp_path / "state")).path)
    data = path.read_bytes()
    for spoiled in (b"", b"x" * 5000, data[: len(data) // 2], data[:4096] + b"\xff" * (len(data) - 4096)):
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        path.write_bytes(spoiled)
        assert batch(tmp_path, '{"query": "TokenStore"}') == first


def test_an_index_that_another_process_holds_can_be_asked_without_waiting(tree: Path, tmp_path: Path) -> None:
    batch(tmp_path, '{"query": "TokenStore"}')
    held = os.open(CodeIndex(str(tree), str(tmp_path / "state")).path + ".lock", os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, (row,), _ = batch(tmp_path, '{"query": "TokenStore"}', "--no-wait")
    finally:
        os.close(held)
    assert code == 0 and row["partial"] is True and row["results"][0]["path"] == "src/auth/token_store.py"


def test_a_reader_that_goes_away_is_no_fault(tree: Path, tmp_path: Path) -> None:
    batch(tmp_path, "")
    process = subprocess.Popen(
        [sys.executable, "-m", "codewhale", "search", "--batch", "-w", "tree"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(b'{"query": "TokenStore"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["results"]
    process.stdout.close()
    try:
        process.stdin.write(b'{"query": "TokenStore"}\n' * 5000)
        process.stdin.close()
    except BrokenPipeError:
        pass
    said = process.stderr.read()
    process.stderr.close()
    process.wait(HANG)
    assert b"Traceback" not in said and said.count(b"\n") <= 1


def test_the_folder_may_vanish_between_two_questions(tree: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "codewhale", "search", "--batch", "-w", "tree"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b'{"query": "TokenStore"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["results"]
    tree.rename(tmp_path / "elsewhere")
    out, said = process.communicate(b'{"id": 2, "query": "TokenStore"}\n', timeout=HANG)
    assert b"Traceback" not in said and process.returncode in (0, 1)
    assert (json.loads(out)["id"] if out else 2) == 2 and (out or said)


def test_while_another_process_builds_names_and_text_answer(tree: Path, tmp_path: Path) -> None:
    lock = Path(CodeIndex(str(tree), str(tmp_path / "state")).path + ".lock")
    lock.parent.mkdir(parents=True)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = codewhale_program(tmp_path, "search", "-w", "tree", "token store")
    assert done.returncode == 0 and "src/auth/token_store.py:" in done.stdout.split("\n")[0]
    assert "Another process is building the index" in done.stderr
