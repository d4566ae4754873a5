"""What `codewhale sandbox` finds out and runs."""

from pathlib import Path

import pytest

from codewhale.cli.offline.sandbox import SandboxError, check_sandbox, run_in_sandbox, wrong_order
from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from codewhale.process.denial import denial
from codewhale.process.launch import Launch


async def test_the_check_tries_what_it_says_and_leaves_nothing() -> None:
    found = await check_sandbox()
    assert found.mechanism == sandbox().mechanism and found.available is bool(found.mechanism)
    assert found.ok is found.available
    assert all(attempt.ok and not attempt.detail for attempt in found.attempts), found.attempts
    if found.available:
        assert {attempt.profile for attempt in found.attempts} == {"read-only", "workspace-write"}
        assert found.profiles == ("none", "read-only", "workspace-write")


async def test_the_check_says_what_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for mechanism, limited in ((LANDLOCK, True), (BUBBLEWRAP, False)):
        monkeypatch.setenv(CHOICE, mechanism)
        sandbox.cache_clear()
        found = await check_sandbox()
        if found.mechanism != mechanism:
            continue
        limited = limited and not sandbox().brokered
        tops = [limit for limit in found.limits if "at the top of the workspace" in limit]
        assert found.ok and bool(tops) is limited, found.limits
        if limited:
            said = denial("workspace-write", (), 1, "touch: cannot touch 'x': Permission denied")
            assert said is not None and "no new files at its top" in said.message
    sandbox.cache_clear()


async def test_a_command_ends_with_its_own_code(workspace: Path) -> None:
    for line, code in (("exit 0", 0), ("exit 9", 9), ("kill -TERM $$", 143)):
        launch = Launch(("/bin/sh", "-c", line), str(workspace), profile="none")
        assert await run_in_sandbox(launch) == code


async def test_what_cannot_be_held_is_told() -> None:
    with pytest.raises(SandboxError, match="nothing was run"):
        await run_in_sandbox(Launch(("true",), "/", profile="workspace-write"))


def test_wrong_orders_are_told() -> None:
    assert wrong_order("none", ()) == "" == wrong_order("read-only", ("network",))
    assert "unknown sandbox profile 'x'" in wrong_order("x", ())
    assert "unknown sandbox allowance 'y'" in wrong_order("read-only", ("y",))
    assert wrong_order("none", ("network",))
