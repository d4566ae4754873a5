"""The harness's own code, where it lies in the workspace that it works on: no tool changes it unasked and no command at
all, in any layout. What is planted would make a file PWNED when the harness runs next."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK
from codewhale.process.itself import own_path, package
from codewhale.protocol.modes import Authority, Mode
from support.jail import call, marks, played
from support.program import environment, scripted

PACKAGES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
LIBRARY = [path for path in own_path() if path.endswith("-packages")]


class Layout:
    """A harness in a workspace: how it is started, and the folders that hold it."""

    def __init__(self, root: Path, code: str, env: str, start: str = "") -> None:
        self.root, self.code, self.env = root, root / code, root / env
        self.start = str(root / (start or env) / "bin" / "python")
        self.variables: dict[str, str] = {}

    def lay_out(self, lists: list[str]) -> "Layout":
        """Copy the package, and make an environment whose packages are listed."""
        shutil.copytree(package(), self.code / "codewhale", ignore=shutil.ignore_patterns("*.pyc.*"))
        (self.env / PACKAGES).mkdir(parents=True, exist_ok=True)
        (self.env / "bin").mkdir(exist_ok=True)
        (self.env / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
        (self.env / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
        (self.env / PACKAGES / "own.pth").write_text("".join(f"{line}\n" for line in [*lists, *LIBRARY]))
        return self

    def run(self, home: Path, *words: str, mechanism: str = "") -> "subprocess.CompletedProcess[str]":
        """The program, as a person starts it."""
        env = {**environment(home), "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1", **self.variables}
        env |= {CHOICE: mechanism} if mechanism else {}
        return subprocess.run(
            [self.start, "-m", "codewhale", *words], cwd=home, env=env, capture_output=True, text=True, timeout=120
        )

    def state(self) -> dict[str, object]:
        """All that the harness runs from."""
        found: dict[str, object] = {}
        for folder in (self.code / "codewhale", self.env):
            for path in [folder, *folder.rglob("*")]:
                about = path.lstat()
                text = path.read_bytes() if path.is_file() and not path.is_symlink() else path.is_symlink()
                found[str(path)] = (about.st_mode, text)
        return found


def environment_of_the_project(root: Path) -> Layout:
    return Layout(root, f".venv/{PACKAGES}", ".venv").lay_out([])


def editable(root: Path) -> Layout:
    return Layout(root, "src", "../env").lay_out([str(root / "src")])


def checkout(root: Path) -> Layout:
    return Layout(root, "src", ".venv").lay_out([str(root / "src")])


def deep(root: Path) -> Layout:
    return Layout(root, "a/b/lib", "tools/python/env").lay_out([str(root / "a/b/lib")])


def linked(root: Path) -> Layout:
    (root / "env").symlink_to("tools/env")
    (root / "pkg").symlink_to("vendor/src")
    return Layout(root, "vendor/src", "tools/env", "env").lay_out([str(root / "pkg")])


def by_variable(root: Path) -> Layout:
    layout = Layout(root, "src", "../env").lay_out([])
    layout.variables = {"PYTHONPATH": str(root / "src")}
    return layout


LAYOUTS: tuple[Callable[[Path], Layout], ...] = (
    environment_of_the_project, editable, checkout, deep, linked, by_variable,
)  # fmt: skip


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda made: made.__name__)
def layout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """One for all tests: none of them changes it."""
    root = tmp_path_factory.mktemp("own") / "work" / "space"
    root.mkdir(parents=True)
    made: Layout = request.param(root)
    (root / "mine").mkdir()
    (root / "mine" / "launcher.py").hardlink_to(made.code / "codewhale" / "process" / "launcher.py")
    return made


def inside(layout: Layout, *paths: Path) -> list[str]:
    """Those in the workspace, as a tool names them."""
    root = os.path.realpath(layout.root)
    named = [os.path.relpath(os.path.realpath(path.parent) + f"/{path.name}", root) for path in paths]
    return [path for path in named if not path.startswith("..")]


def targets(layout: Layout) -> list[str]:
    """Files that would run outside of any sandbox."""
    code, packages = layout.code / "codewhale", layout.env / PACKAGES
    found = inside(
        layout, code / "process" / "launcher.py", code / "__init__.py", code / "new.py", code / "__pycache__" / "x.pyc",
        packages / "sitecustomize.py", packages / "evil.pth", packages / "own.pth", layout.env / "pyvenv.cfg",
        layout.env / "bin" / "git", layout.code / "sitecustomize.py", layout.code / "usercustomize" / "__init__.py",
    )  # fmt: skip
    return [*found, *(f"pkg/{path.partition('src/')[2]}" for path in found if (layout.root / "pkg").is_symlink()
                      and path.startswith("vendor/src/"))]  # fmt: skip


@pytest.mark.parametrize("flags", [(), ("--auto",), ("--yolo",)], ids=["agent", "auto", "yolo"])
def test_no_tool_writes_the_code_that_runs_it_unasked(flags: tuple[str, ...], layout: Layout, tmp_path: Path) -> None:
    if flags != ("--yolo",) and layout.env.name != ".venv":
        pytest.skip("what runs unasked in the freest mode is looked at in every layout")
    plant = f"open({str(tmp_path / 'PWNED')!r}, 'w')\n"
    names = targets(layout)
    calls = [call("write_file", path=path, content=plant) for path in names]
    calls += [call("edit_file", path=path, search="import", replace=f"{plant}import") for path in names[:2]]
    calls += [call("apply_patch", patch=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{plant}") for path in names]
    calls += [call("write_file", path="mine.txt", content="changed\n")]
    (layout.root / "mine.txt").write_text("mine\n")
    before = layout.state()
    scripted(tmp_path, json.dumps({"calls": calls}), '{"text":"done"}')
    done = layout.run(tmp_path, "exec", *flags, "-w", str(layout.root), "--output-format", "json", "Go.")
    assert layout.state() == before, done.stderr
    assert (layout.root / "mine.txt").read_text() == "changed\n", done.stderr
    assert not list(layout.root.rglob("*customize*"))
    assert layout.run(tmp_path, "--version").returncode == 0 and marks(tmp_path) == []


COMMANDS = (
    "echo PLANT >> CODE/codewhale/process/launcher.py",
    "sed -i 1iPLANT CODE/codewhale/__init__.py",
    "cp -f mine.txt CODE/codewhale/process/launcher.py",
    "rm -rf CODE/codewhale",
    "mv CODE CODE.old && mkdir -p CODE/codewhale && echo PLANT > CODE/codewhale/__init__.py",
    "ln CODE/codewhale/process/launcher.py second && echo PLANT >> second",
    "ln -s CODE/codewhale/process third && echo PLANT >> third/launcher.py",
    "mkdir -p CODE/codewhale/__pycache__ && echo PLANT > CODE/codewhale/__pycache__/__init__.pyc",
    "echo PLANT >> mine/launcher.py",
    "echo PLANT > CODE/sitecustomize.py; mkdir CODE/usercustomize; echo PLANT > CODE/usercustomize/__init__.py",
    "echo PLANT > ENV/PACKAGES/sitecustomize.py",
    "echo import os, PLANT > ENV/PACKAGES/evil.pth",
    "echo PLANT > ENV/bin/git; chmod +x ENV/bin/git",
    "rm ENV/bin/python; cp /bin/sh ENV/bin/python",
    "echo home=/nowhere > ENV/pyvenv.cfg",
    "mv ENV ENV.old && cp -r ENV.old ENV && echo PLANT > ENV/PACKAGES/sitecustomize.py",
    "truncate -s 0 CODE/codewhale/cli/__init__.py",
    "chmod -R u+w CODE/codewhale ENV; find CODE/codewhale -name launcher.py -exec tee -a {} < mine.txt +",
)


@pytest.mark.parametrize("mechanism", [BUBBLEWRAP, LANDLOCK])
def test_no_command_changes_the_code_that_runs_it(mechanism: str, layout: Layout, tmp_path: Path) -> None:
    plant = f"open({str(tmp_path / 'PWNED')!r}, 'w')"
    places = {"PLANT": plant.replace("'", '"'), "CODE": str(layout.code), "ENV": str(layout.env), "PACKAGES": PACKAGES}
    script = "".join(f"({line})\n" for line in [*COMMANDS, "echo changed > mine.txt"])  # all in one sandbox
    for name, text in places.items():
        script = script.replace(name, text if name != "PLANT" else f"'{text}'")
    (layout.root / "mine.txt").write_text("mine\n")
    before = layout.state()
    scripted(tmp_path, json.dumps({"calls": [call("exec_shell", command=script)]}), '{"text":"done"}')
    done = layout.run(tmp_path, "exec", "--yolo", "-w", str(layout.root), "Go.", mechanism=mechanism)
    if re.search("(No|no working) sandbox", done.stdout + done.stderr):
        pytest.skip(f"no {mechanism} on this machine")
    after = layout.state()
    for name in ("second", "third"):
        (layout.root / name).unlink(missing_ok=True)
    assert {path for path in {*before, *after} if before.get(path) != after.get(path)} == set(), done.stderr
    assert (layout.root / "mine.txt").read_text() == "changed\n", done.stderr
    assert layout.run(tmp_path, "--version").returncode == 0 and marks(tmp_path) == []


async def test_no_tool_writes_the_settings_that_it_runs_under_whatever_their_folder_is_called(tmp_path: Path) -> None:
    home = tmp_path / "workspace" / "state"
    home.mkdir(parents=True, mode=0o700)
    (tmp_path / "workspace" / "link").symlink_to("state")
    paths = ("state/config.toml", "state/permissions.toml", "state/snapshots/x/config", "link/config.toml", "STATE2")
    calls = [call("write_file", path=path, content="x = 1\n") for path in paths]
    found = await played(home, tmp_path / "workspace", *calls, mode=Mode.YOLO, authority=Authority.PERSON)
    assert [result.error for result in found] == [*["permission_denied"] * 4, ""]
    assert "x = 1" not in (home / "config.toml").read_text() and not (home / "permissions.toml").exists()
