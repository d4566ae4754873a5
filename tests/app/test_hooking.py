"""Without hooks nothing of them is imported or built; with the project's alone, only where the project is."""

import subprocess
import sys
from pathlib import Path

from codewhale.testing import harness
from support.jail import call
from support.patience import HANG
from support.program import environment, scripted
from support.scenes import results


async def test_hooks_are_built_where_there_are_any(home: Path, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".codewhale").mkdir(parents=True)
    (other / ".codewhale" / "hooks.toml").write_text("")
    async with harness(home, workspace, [{"calls": [call("list_dir")]}, {"text": "Done."}]) as stage:
        assert results(await stage.turn("Go."))[0].ok
        assert not stage.app.parts.services.built("hooks")
        hooking = stage.app.parts.hooking
        assert hooking.at(str(workspace)) is None and hooking.at(str(other)) is not None
        assert await hooking.submitted("s", str(workspace), "text") == "text"
        assert await hooking.shell_env("s", str(workspace)) == {}


def test_a_run_without_hooks_imports_nothing_of_them(tmp_path: Path) -> None:
    scripted(tmp_path, '{"calls":[{"name":"list_dir"}]}', '{"text":"done"}')
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "codewhale", "exec", "hi"],
        cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip
    assert done.stdout == "done\n"
    unwanted = ("services.hooks", "permissions.trust", "permissions.network", "process.dial")
    assert [name for name in unwanted if f"codewhale.{name}" in done.stderr] == []
