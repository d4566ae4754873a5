"""Prefixes: how long one is, which may be remembered, and which commands have it."""

import shlex

import pytest

from codewhale.permissions.prefixes import UNKNOWN, allows, forbids, is_runner, offered, words


def argv(line: str) -> tuple[str, ...]:
    """The words of a plain command, with ? for one that is not known."""
    return tuple(word.replace("?", UNKNOWN) for word in shlex.split(line))


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("git push origin main", "git push"),
        ("git commit -m 'fix it'", "git commit"),
        ("git remote add origin x", "git remote add"),
        ("npm run build -- --watch", "npm run build"),
        ("npm test", "npm test"),
        ("cargo build --release", "cargo build"),
        ("make test", "make test"),
        ("pytest -q tests", "pytest"),
        ("docker compose up", ""),
        ("gh pr create --fill", "gh pr create"),
        ("ruff check .", "ruff"),
        ("pip install requests", "pip install"),
        ("kubectl get pods", "kubectl get"),
    ],
)
def test_the_prefix_says_what_is_done(command: str, prefix: str) -> None:
    assert offered(argv(command)) == prefix


@pytest.mark.parametrize(
    "command",
    [
        "git", "git -c a=b log", "git -C x push", "git config user.name x", "git rebase -x make main",
        "git submodule foreach x", "git bisect run x", "npm", "npm run", "npm exec x", "npm --prefix x run y", "npx x",
        "pnpm dlx x", "yarn dlx x", "bun x y", "python x.py", "python3.12 -m pytest", "python -c 1", "pypy3 x",
        "node x", "nodejs x", "deno run x", "ruby x", "perl -e 1", "php x", "lua5.4 x", "bash x.sh", "sh -c ls",
        "zsh", "dash x", "busybox sh", "env ls", "timeout 5 ls", "nice ls", "nohup ls", "xargs rm", "sudo ls",
        "doas ls", "setsid ls", "stdbuf -o0 ls", "time ls", "watch ls", "find . -name x", "ssh host ls", "docker run x",
        "docker exec x sh", "kubectl exec x", "uv run x", "uvx x", "pipx run x", "poetry run x", "bundle exec x",
        "cargo run", "go run .", "awk 1", "sed -n 1p", "vim x", "less x", "man ls", "rm x", "rm -rf build", "mv a b",
        "cp a b", "curl x", "wget x", "chmod +x a", "dd if=a", "tee x", "kill 1", "nc x 1", "./run.sh", "../x",
        "/usr/bin/git push", "~/bin/x", "bin/x y", "PYTHON x", "Bash x", "make", "cargo", "docker", "FOO=1", "git ?",
        "? push", "$X push", "", "eval x", ". x", "source x", "exec ls", "command ls", "git\u200b push", "ｇit push",
    ],
)  # fmt: skip
def test_a17_no_interpreter_wrapper_or_bare_program_is_offered_for_ever(command: str) -> None:
    assert offered(argv(command)) == ""


@pytest.mark.parametrize("program", ["python3", "python3.13", "/usr/bin/perl5.36", "node20", "BASH", "sh.exe"])
def test_interpreters_are_known_by_any_of_their_names(program: str) -> None:
    assert is_runner(program)


@pytest.mark.parametrize("program", ["git", "cargo", "make", "pytest", "ls", "shellcheck", "python-config"])
def test_other_programs_are_none(program: str) -> None:
    assert not is_runner(program)


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s --porcelain", True),
        ("git status", "git push", False),
        ("git status", "git -c core.pager=x status", False),
        ("git status", "git --exec-path=/tmp status", False),
        ("git status", "GIT status", False),
        ("git", "git status", False),
        ("npm run", "npm run build", False),
        ("npm run build", "npm run build --watch", True),
        ("npm run build", "npm run build:all", False),
        ("cargo test", "cargo test -- --nocapture", True),
        ("cargo test", "cargo testify", False),
        ("cargo test", "/evil/cargo test", False),
        ("pytest", "pytest -q", True),
        ("pytest", "pytest-watch", False),
        ("git push", "git ?", False),
    ],
)
def test_a_trusted_prefix_is_taken_word_for_word(rule: str, command: str, expected: bool) -> None:
    assert allows(words(rule), argv(command)) is expected


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("git push", "git push", True),
        ("git push", "GIT PUSH origin", True),
        ("git push", "/usr/bin/git push", True),
        ("git push", "git -C dir push", True),
        ("git push", "git --no-pager -c a=b push", True),
        ("git push", "git commit -m push", False),
        ("git push", "git pull", False),
        ("git push", "git ?", True),
        ("git push", "? push", True),
        ("git push", "git commit ?", False),
        ("git push --force", "git push origin main --force", True),
        ("git push --force", "git push --forc", True),
        ("git push --force", "git push origin", False),
        ("git push --force", "git push ?", True),
        ("rm -rf", "rm -r -f x", True),
        ("rm -rf", "rm -fr x", True),
        ("rm -rf", "rm -vrf x", True),
        ("rm -rf", "rm -r x", False),
        ("rm", "rm x", True),
        ("rm", "rmdir x", False),
        ("npm publish", "npm --prefix pkg publish", True),
        ("curl", "curl -s x", True),
    ],
)
def test_a_forbidden_prefix_is_found_however_it_is_written(rule: str, command: str, expected: bool) -> None:
    assert forbids(words(rule), argv(command)) is expected


@pytest.mark.parametrize("prefix", ["", "  ", "a\nb", "a 'b", "a\0"])
def test_what_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError):
        words(prefix)
