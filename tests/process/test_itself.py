"""Where the harness's own code lies, and how its interpreter is started again."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from codewhale.process import itself
from codewhale.process.itself import DEPENDENCIES, own_path, own_places, own_python, package, start_folders
from support.house import ROOT


def test_it_knows_what_it_imports_of_others() -> None:
    rows = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = {re.split(r"[\[<>=]", row)[0].strip() for row in rows}
    provided = metadata.packages_distributions()
    needed = {name for name, owners in provided.items() if {owner.lower() for owner in owners} & {
        one.lower() for one in wanted}}  # fmt: skip
    assert {
        name for name in needed if not name.startswith(("_", "grammars")) and not name.endswith(("_cli", "_cfg"))
    } <= DEPENDENCIES


def started(code: str, *args: str, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        own_python(code, *args), cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_the_folder_or_the_environment_has_a_say_in_how_it_starts(tmp_path: Path) -> None:
    for name in ("codewhale", "msgspec", "encodings", "json", "sitecustomize"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('planted')\n")
    code = "import json, msgspec, codewhale; print(json.dumps([codewhale.__file__, sys.argv[1:], sys.path]))"
    for path in (".", "", str(tmp_path)):
        said = started(code, "a", "b", cwd=tmp_path, PYTHONPATH=path, PYTHONHOME=path, PYTHONSTARTUP=f"{path}/json.py")
        file, args, places = json.loads(said)
        assert os.path.dirname(file) == package() and args == ["a", "b"]
        assert places == own_path() and not any(place.startswith(str(tmp_path)) for place in places)


def test_it_takes_modules_from_packages_alone_once_it_runs(tmp_path: Path) -> None:
    code = "from codewhale.process.itself import narrow; narrow(); import sys, json; print(json.dumps(sys.path))"
    source = os.path.dirname(package())
    env = {**os.environ, "PYTHONPATH": f"{source}:.:{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout) == own_path()


def test_a_folder_that_holds_what_would_be_missing_stays_behind_the_others(tmp_path: Path) -> None:
    (tmp_path / "msgspec").mkdir()
    (tmp_path / "other").mkdir()
    code = (
        "import sys; from codewhale.process import itself; lacking = [p for p in sys.path if 'site-packages' not in p];"
        f"sys.path[:] = [{str(tmp_path)!r}, {str(tmp_path / 'other')!r}, *lacking];"
        "print(itself.own_path()[-1]); print(len(itself.own_path()))"
    )
    last, count = started(code, cwd=Path("/")).split()
    assert last == str(tmp_path) and int(count) == len([p for p in own_path() if "site-packages" not in p]) + 1


def test_its_places_in_a_workspace_are_the_package_the_environment_and_every_link_on_the_way() -> None:
    root = os.path.dirname(os.path.dirname(package()))
    assert package() in own_places(root)
    assert own_places(os.path.join(package(), "process")) == (os.path.join(package(), "process"),)
    assert own_places("/nowhere") == () == start_folders("/nowhere")
    prefix = os.path.realpath(sys.prefix)
    if prefix != sys.base_prefix:
        assert prefix in own_places(os.path.dirname(prefix))
        assert os.path.join(prefix, "bin") in own_places(prefix)


@pytest.mark.parametrize("steps", [1, 3])
def test_links_are_followed_one_by_one(steps: int, tmp_path: Path) -> None:
    (tmp_path / "real" / "bin").mkdir(parents=True)
    (tmp_path / "real" / "bin" / "python").write_text("")
    last = "real"
    for number in range(steps):
        (tmp_path / f"link{number}").symlink_to(last)
        last = f"link{number}"
    ways = itself._ways(str(tmp_path / last / "bin" / "python"))
    assert set(ways) == {*(str(tmp_path / f"link{n}") for n in range(steps)), str(tmp_path / "real/bin/python")}


def test_a_folder_of_packages_is_listed_anew_when_it_has_changed(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    for long_ago, more in ((1, "two"), (2, "three")):
        os.utime(tmp_path, (long_ago, long_ago))
        before = itself._modules(str(tmp_path))
        (tmp_path / f"{more}.py").touch()
        assert itself._modules(str(tmp_path)) == before | {more}
        (tmp_path / "at_once.py").touch()
        assert "at_once" in itself._modules(str(tmp_path))
        (tmp_path / "at_once.py").unlink()
        assert itself._modules(str(tmp_path)) == before | {more}
