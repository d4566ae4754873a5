"""The profile for macOS, by its text: it has not run."""

import re

from codewhale.process.sandbox.profiles import Confinement, GitPlace, Site
from codewhale.process.sandbox.seatbelt import PROGRAM, seatbelt, seatbelt_profile

SITE = Site('/w/o"rk', '/w/o"rk', "/private/tmp/t", "/Users/a", "/Users/a/.codewhale", (GitPlace("/w/.git"),))


def test_it_denies_by_default_and_allows_what_is_named() -> None:
    text = seatbelt_profile(Confinement(), SITE)
    assert text.startswith("(version 1)\n(deny default)\n")
    assert '(subpath "/private/tmp/t")' in text and "/w/" not in text and "network" not in text
    assert '(deny file-read* file-write* (subpath "/Users/a/.codewhale/secrets"))' in text
    assert text.count("(") == text.count(")")


def test_the_workspace_is_quoted_and_protected_names_follow_it() -> None:
    text = seatbelt_profile(Confinement(writes=True, network=True, folders=("/srv",)), SITE, ("/Users/a/.npm",))
    for part in ('(subpath "/w/o\\"rk")', '(subpath "/w/.git")', '(subpath "/srv")', '(subpath "/Users/a/.npm")'):
        assert text.index(part) < text.index("(deny file-write*")
    assert "(allow network*)" in text
    patterns = [re.compile(found) for found in re.findall(r'deny file-write\* \(regex #"(.*)"\)', text)]
    for path in (
        "/w/.git/hooks/x",
        "/w/.GIT/config",
        "/w/a/.vscode/tasks.json",
        "/w/.Mcp.json",
        "/w/AGENTS.md",
        "/w/.git",
    ):
        assert any(pattern.search(path) for pattern in patterns), path
    for path in ("/w/.git/index", "/w/.gitignore", "/w/src/config", "/w/agents.md.txt"):
        assert not any(pattern.search(path) for pattern in patterns), path


def test_the_command_stands_behind_the_profile() -> None:
    plan = seatbelt(("make", "test"), Confinement(), SITE)
    assert plan.argv[:2] == (PROGRAM, "-p") and plan.argv[3:] == ("make", "test")
    assert plan.env["TMPDIR"] == "/private/tmp/t" and plan.env["GOCACHE"].startswith("/private/tmp/t/")


def test_what_the_harness_runs_from_stays_as_it_is() -> None:
    site = Site("/w", "/w", "/private/tmp/t", own=("/w/.venv",))
    text = seatbelt_profile(Confinement(writes=True), site)
    assert text.index("(allow file-write*") < text.index('(deny file-write* (subpath "/w/.venv"))')
