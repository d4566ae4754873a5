"""Ways out of the sandbox: a part of the probes that `make escapes` tries in full, and what rests on it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.confinement import sandbox
from codewhale.process.launch import Launch, run
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock_abi
from support.escapes import PROBES, Probe
from support.escapeworld import PYTHON, try_probe
from support.house import ROOT

held = pytest.mark.skipif(
    not sandbox().mechanism or not os.access(PYTHON, os.X_OK), reason="nothing on this machine holds a command"
)
NAMED = {probe.name: probe for probe in PROBES}
PROTECTED = [probe for probe in PROBES if probe.writes and not probe.planting]
SENDING = ("connect to this machine", "send a packet", "look up a name", "a service by name", "a service by packets")
REACHING = ("end the harness", "read its environment", "write through a link", "outlive the command", "new namespaces",
            "read what a person types", "change a person's terminal", "a service by abstract name, with a network",
            "mount over what is read-only", "the kernel's settings", "a set-id program", "rights kept")  # fmt: skip


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that is not below /tmp."""
    place = ROOT / ".scratch" / f"attacks-{os.getpid()}"
    place.parent.mkdir(exist_ok=True)
    kept = {name: os.environ.get(name) for name in ("HOME", "CODEWHALE_HOME", "DEEPSEEK_API_KEY")}
    yield place
    for name, value in kept.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@held
@pytest.mark.parametrize("probe", PROTECTED, ids=lambda probe: probe.name.replace(" ", "-"))
async def test_b7_no_command_writes_what_makes_others_run_things(probe: Probe, base: Path) -> None:
    assert await try_probe(base, probe, "workspace-write") == []


@held
@pytest.mark.parametrize("name", SENDING)
async def test_d6_nothing_leaves_a_command_not_even_a_name_to_look_up(name: str, base: Path) -> None:
    assert await try_probe(base, NAMED[name], "workspace-write") == []


@held
@pytest.mark.parametrize("profile", ["read-only", "workspace-write"])
@pytest.mark.parametrize("name", REACHING)
async def test_no_command_reaches_what_is_around_it(name: str, profile: str, base: Path) -> None:
    assert await try_probe(base, NAMED[name], profile) == []


@held
async def test_c12_tests_and_checks_of_a_project_are_held(tmp_path: Path, workspace: Path) -> None:
    (workspace / "conftest.py").write_text(f"open({str(tmp_path / 'PWNED')!r}, 'w')\n")
    (workspace / "test_a.py").write_text("def test_a(): pass\n")
    for profile in ("read-only", "workspace-write"):
        argv = (PYTHON, "-c", "import conftest")
        done = await run(Launch(argv, str(workspace), profile=profile, workspace=str(workspace)))
        assert done.confined
        assert not (tmp_path / "PWNED").exists()


def test_some_mechanism_is_there_on_a_kernel_that_has_one() -> None:
    assert sandbox().mechanism or landlock_abi() < LEAST_ABI, sandbox().tried
