"""A refusal of the sandbox is known by what the command printed, and nothing else is taken for one."""

import pytest

from codewhale.process.denial import ConfinedRun, recognise

HELD = ConfinedRun("workspace-write")


@pytest.mark.parametrize(
    "line",
    [
        "curl: (6) Could not resolve host: example.com",
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "pip: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
        "npm ERR! network request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN",
        "bash: connect: Network is unreachable",
        "dial tcp: lookup proxy.golang.org: no such host",
        "java.net.UnknownHostException: repo.maven.apache.org",
        "error sending request: dns error: failed to lookup address information",
    ],
)
def test_a_missing_network_is_known(line: str) -> None:
    found = recognise(HELD, 1, f"Working...\n{line}\nbye\n")
    assert found is not None and (found.allowance, found.evidence) == ("network", line)
    assert recognise(ConfinedRun("workspace-write", ("network",)), 1, line) is None


@pytest.mark.parametrize(
    "line",
    [
        "touch: cannot touch '/etc/x': Read-only file system",
        "OSError: [Errno 30] Read-only file system: '/srv/x'",
        "mv: cannot move '.git' to 'x': Device or resource busy",
        "error: EROFS: read-only file system, open '/usr/lib/x'",
        "bwrap: Can't bind mount /x: No such file",
    ],
)
def test_a_place_that_may_not_be_written_is_known(line: str) -> None:
    found = recognise(HELD, 2, line)
    assert found is not None and (found.allowance, found.evidence) == ("write", line)


def test_plain_refusals_count_only_where_rights_were_lost() -> None:
    line = "chown: changing ownership of 'a': Operation not permitted"
    assert recognise(HELD, 1, line) is None
    found = recognise(ConfinedRun("read-only", (), loses_rights=True), 1, line)
    assert found is not None and "read-only" in found.message


@pytest.mark.parametrize(
    "line",
    [
        "x.py:475: PytestCacheWarning: could not create cache path /w/v: [Errno 13] Permission denied: '/w/a'",
        "warning: unable to access '/root/.config/git/attributes': Permission denied",
        "WARNING (cache): [Errno 30] Read-only file system: '/w/.mypy_cache'",
    ],
)
def test_a_warning_is_not_what_a_command_failed_of(line: str) -> None:
    assert (
        recognise(ConfinedRun("workspace-write", (), loses_rights=True), 1, f"{line}\n1 failed, 2 warnings in 0.98s")
        is None
    )
    both = recognise(ConfinedRun("workspace-write", (), loses_rights=True), 1, f"{line}\ntouch: 'a': Permission denied")
    assert both is not None and both.evidence == "touch: 'a': Permission denied"
    retried = "WARNING: Retrying (Retry(total=4)): Failed to establish a new connection: [Errno 101]"
    assert recognise(HELD, 1, retried) is not None  # pip says no more of it


def test_nothing_else_is_taken_for_one() -> None:
    assert recognise(HELD, 0, "Read-only file system") is None
    assert recognise(ConfinedRun("none"), 1, "Read-only file system") is None
    assert recognise(HELD, 1, "AssertionError: 1 != 2") is None


def test_evidence_is_one_bounded_line() -> None:
    found = recognise(HELD, 1, "x" * 5000 + " Read-only file system \x1b[2J")
    assert found is not None and len(found.evidence) <= 200 and "\x1b" not in found.evidence
