"""Command lines judged: ours, the outside ones, spoiled ones, and allowed ones run in a jail."""

import random
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from codewhale.permissions.shell.judge import ShellContext, analyse
from support.patience import HANG
from support.shelllines import HERE, Jail, kept, named, spoiled, suite, table


@pytest.mark.parametrize(("name", "verdicts"), [
    ("reads", {"allow"}), ("everyday", {"allow"}), ("asks", {"ask"}), ("never", {"deny"}), ("ordinary", {"ask"}),
])  # fmt: skip
def test_lines_of_ours_are_judged_as_they_stand(name: str, verdicts: set[str]) -> None:
    wrong = {line: analyse(line, HERE).rule for line in kept(name) if analyse(line, HERE).verdict not in verdicts}
    assert wrong == {}


def test_outside_cases_do_not_leak_and_do_not_rub() -> None:
    rows = suite()
    if not rows:
        pytest.skip("the outside cases of shell_policy are not here")
    counts = table(rows, lambda line: analyse(line, HERE).verdict)
    assert counts["leaks"] == 0
    assert counts["friction"] <= 0.15 * counts["safe"]
    assert counts["softened"] <= 0.05 * counts["deny"]


@pytest.mark.parametrize("place", ["/", "/root", "/home/me", "/tmp/x", "/root/project/sub"])
def test_a_line_is_no_safer_elsewhere(place: str) -> None:
    for home in ("/root", "/home/me", place):
        here = ShellContext(place, place, home)
        wrong = [line for line in kept("asks") if analyse(line, here).verdict == "allow"]
        assert [line for line in wrong if analyse(line, HERE).rule != "shell.outside"] == []


def test_spoiled_lines_are_judged_and_what_is_allowed_does_what_was_named(tmp_path: Path) -> None:
    chance = random.Random(7)
    seeds = kept("reads") * 3 + kept("asks")
    lines = list(islice(spoiled(seeds, chance), 3000))
    allowed = [line for line in lines if analyse(line, HERE).verdict == "allow"][:150]
    assert len(allowed) == 150
    if shutil.which("bwrap") is None:
        pytest.skip("no bwrap here to run them in")
    for line, called in zip(allowed, Jail(tmp_path).run(allowed), strict=True):
        assert called <= named(analyse(line, HERE)), line


def test_git_needs_the_sandbox_and_other_readers_do_not() -> None:
    bare = ShellContext("/w", "", "/root", sandbox=False)
    assert analyse("git status", HERE).sandbox == "read-only"
    judged = analyse("git status", bare)
    assert (judged.verdict, judged.rule) == ("ask", "shell.sandbox")
    assert (analyse("ls", bare).verdict, analyse("ls", bare).sandbox) == ("allow", "none")


def test_a_question_names_what_the_line_would_do() -> None:
    rules = {
        "npm test": "shell.project-code", "mkdir x": "shell.write", "git commit -m x": "shell.git-write",
        "curl -I https://x": "shell.network", "git fetch": "shell.network", "pip install x": "shell.network",
        "cat .env": "shell.secret-read", "python3 x.py .env": "shell.secret-read", "cat /etc/hosts": "shell.outside",
        "foo": "shell.unknown", "ls > x": "shell.redirect", "echo $API_KEY": "shell.secret-read",
        "cat $x": "shell.expansion", "PATH=. ls": "shell.environment",
        "ls &": "shell.construct", "sort -o x y": "shell.option", "kill 12": "shell.system",
    }  # fmt: skip
    assert {line: analyse(line, HERE).rule for line in rules} == rules
    alone = {line for line in rules if analyse(line, HERE).sandbox == "none"}
    assert {rules[line] for line in alone} == {"shell.network", "shell.secret-read", "shell.outside"}


def test_every_command_is_listed_and_only_a_plain_line_is_plain() -> None:
    judged = analyse("env FOO=1 git push origin main | tee log; bash -c 'npm publish'", HERE)
    heads = [command.argv[:2] for command in judged.commands]
    for expected in (("git", "push"), ("tee", "log"), ("npm", "publish")):
        assert expected in heads
    assert not judged.plain
    assert analyse("git push origin main", HERE).plain
    for line in ("git push; ls", "git push > x", "A=1 git push", "git push $X", "env git push", "g'i't push $(x)"):
        assert not analyse(line, HERE).plain, line


def test_a_long_line_is_asked_about_without_a_look() -> None:
    for line in ("ls " + "a" * 16_384, "é" * 9_000, "a=(" * 1300, "<<a " * 500):
        judged = analyse(line, HERE)
        assert (judged.verdict, judged.commands) == ("ask", ())


def test_what_is_lone_or_broken_is_judged_too() -> None:
    for line in (
        "",
        " ",
        "\n",
        "\ud800",
        "ls \ud800x",
        "\x00",
        "é" * 100,
        "\\",
        "'",
        "$(",
        "((((",
        "}{",
        "<<",
        "a" * 16_384,
    ):
        assert analyse(line, HERE).verdict == "ask", line


def test_what_was_judged_before_changes_no_judgement() -> None:
    lines = [line for name in ("reads", "asks", "never", "ordinary") for line in kept(name)]
    lines += [f"cd /etc && {line}" for line in kept("reads")] + [f"{line} | sh" for line in kept("reads")]
    pairs = [(line, place) for line in lines[::2] for place in (HERE.workspace, "/root/other")]
    judged = [msgspec.to_builtins(analyse(line, ShellContext(place, place, HERE.home))) for line, place in pairs]
    backwards = subprocess.run(
        [sys.executable, "-c", _BACKWARDS, HERE.home],
        input=msgspec.json.encode(pairs), stdout=subprocess.PIPE, check=True, timeout=HANG,
    )  # fmt: skip
    assert msgspec.json.decode(backwards.stdout) == msgspec.json.decode(msgspec.json.encode(judged))


_BACKWARDS = """
import sys, msgspec
from codewhale.permissions.shell.judge import ShellContext, analyse
pairs = msgspec.json.decode(sys.stdin.buffer.read())
judged = [analyse(line, ShellContext(place, place, sys.argv[1])) for line, place in reversed(pairs)]
sys.stdout.buffer.write(msgspec.json.encode(judged[::-1]))
"""
