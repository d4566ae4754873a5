"""What lies on the disk where a line would run: patterns, links, odd names, and bounds."""

import itertools
import os
from pathlib import Path

import pytest

from codewhale.permissions.shell import paths
from codewhale.process.sandbox.gitfiles import read_small


def test_a_pattern_is_what_the_shell_makes_of_it(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", ".c.py", "d/e.py", "d/.f.py", "g/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    here = str(tmp_path)
    assert paths.expand("*.py", here) == ["a.py", "b.py"]
    assert paths.expand("*/*.py", here) == ["d/e.py", "g/e.py"]
    assert paths.expand("d/.*.py", here) == ["d/.f.py"]
    assert paths.expand("[ab].py", here) == ["a.py", "b.py"]
    assert paths.expand("*.c", here) == ["*.c"]
    assert paths.expand(f"{here}/?.py", "/") == [f"{here}/a.py", f"{here}/b.py"]


def test_very_many_names_are_not_known(tmp_path: Path) -> None:
    for number in range(paths.MOST_NAMES + 1):
        (tmp_path / str(number)).touch()
    assert paths.expand("*", str(tmp_path)) is None


@pytest.mark.parametrize("name", ["a b", "-n", "@x", "a'b", "a\nb", "sub/ x"])
def test_odd_names_are_met_wherever_they_are(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    assert paths.trouble_below([str(tmp_path)], str(tmp_path), "*") == ""
    (tmp_path / name).touch()
    assert "unusual file name" in paths.trouble_below([str(tmp_path)], str(tmp_path), "*")
    assert paths.trouble_below([str(tmp_path)], str(tmp_path)) == ""


def test_a_link_that_leads_out_is_met(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub" / "ok").symlink_to("../sub")
    assert paths.trouble_below([str(inside)], str(inside)) == ""
    (inside / "sub" / "out").symlink_to(tmp_path)
    assert "leads out" in paths.trouble_below([str(inside)], str(inside))


def test_no_path_is_too_odd(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in ("\0", "/nowhere/x", str(tmp_path / "loop")):
        assert paths.expand(f"{path}/*", str(tmp_path)) == [f"{path}/*"]
        assert not paths.is_folder(path) and read_small(path) is None and paths.real_path(path)
        assert paths.trouble_below([path], "/", "*") == ""


def test_a_path_leads_where_the_system_says(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "folder" / "inner").mkdir(parents=True)
    (top / "folder" / "file").touch()
    links = {"out": "/etc", "within": "folder/inner", "up": "..", "round": "round", "one": "other", "other": "one"}
    for name, target in {**links, "to_file": "folder/file", "gone": "nowhere/at/all"}.items():
        (top / name).symlink_to(target)
        (top / "folder" / name).symlink_to(target)
    names = [*os.listdir(top), "inner", "file", "missing", "..", ".", ""]
    for walked in itertools.product(names, repeat=3):
        paths.real_path.cache_clear()
        for path in (f"{top}/{'/'.join(walked[:count])}" for count in (3, 2, 1)):
            assert paths.real_path(path) == os.path.realpath(path)
    for odd in ("", "/", "//", "/etc/", "folder", "/a\0b/c", f"{top}/{'d/' * 300}e", f"{top}/{'n' * 300}/e"):
        try:
            expected = os.path.realpath(odd)
        except ValueError:
            expected = odd
        assert paths.real_path(odd) == expected
