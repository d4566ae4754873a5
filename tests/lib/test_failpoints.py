import errno
import subprocess
import sys
from pathlib import Path

import pytest

import codewhale
from codewhale.lib import failpoints


def test_unset_points_do_nothing() -> None:
    assert not any(failpoints.armed(name) for name in failpoints.POINTS)
    for name in failpoints.POINTS:
        failpoints.hit(name)


def test_parse_reads_kind_hit_and_onward() -> None:
    points = failpoints.parse("log.append.mid=kill@3,log.sync.before=enospc@2+")
    assert points["log.append.mid"][:3] == ("kill", 3, False)
    assert points["log.sync.before"][:3] == ("enospc", 2, True)


@pytest.mark.parametrize("text", ["log.append.mid=explode@1", "no.such.point=kill@1", "log.append.mid=kill@x"])
def test_parse_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(ValueError):
        failpoints.parse(text)


def test_every_point_is_named_in_the_source_and_nowhere_misspelt() -> None:
    root = Path(codewhale.__file__).parent
    text = "\n".join(path.read_text() for path in root.rglob("*.py") if path.name != "failpoints.py")
    for name in failpoints.POINTS:
        stem = name.rsplit(".", 1)[0]
        assert f'"{name}"' in text or f'point="{stem}"' in text, name


def run(value: str) -> "subprocess.CompletedProcess[str]":
    code = """
from codewhale.lib import failpoints
for number in range(1, 5):
    try:
        failpoints.hit("log.append.before")
        print(number, "passed", flush=True)
    except OSError as error:
        print(number, error.errno, flush=True)
"""
    environment = {"CODEWHALE_FAILPOINTS": value, "PYTHONPATH": str(Path(codewhale.__file__).parents[1])}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_a_point_acts_at_its_hit() -> None:
    killed = run("log.append.before=kill@3")
    assert killed.returncode == -9
    assert killed.stdout == "1 passed\n2 passed\n"
    failing = run("log.append.before=eio@2")
    assert failing.stdout == f"1 passed\n2 {errno.EIO}\n3 passed\n4 passed\n"
    onward = run("log.append.before=enospc@3+")
    assert onward.stdout == f"1 passed\n2 passed\n3 {errno.ENOSPC}\n4 {errno.ENOSPC}\n"
