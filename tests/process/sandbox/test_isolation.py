"""The profile for a program that runs a model's code: it has its interpreter and what is named, and no more."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from codewhale.process.itself import interpreter, runtime_places
from codewhale.process.launch import Launch, run
from codewhale.process.sandbox.profiles import Confinement, Site
from codewhale.process.sandbox.seatbelt import PROGRAM, seatbelt

# Tries each of a list of expressions; what came of it, or the kind of what was raised.
TRY = """
import json, os, sys
def tried(text):
    try:
        return repr(eval(text))
    except BaseException as error:
        return type(error).__name__
print(json.dumps([tried(text) for text in json.loads(sys.argv[1])]))
"""


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(CHOICE, request.param)
    sandbox.cache_clear()
    if sandbox().mechanism != request.param:
        pytest.skip(f"{request.param} holds nothing on this machine")
    yield request.param
    sandbox.cache_clear()


async def tried(texts: list[str], *seen: str, **more: Any) -> list[str]:
    argv = (interpreter(), "-I", "-S", "-c", TRY, json.dumps(texts))
    allowances = tuple(f"read:{path}" for path in seen)
    done = await run(Launch(argv, "/", profile="isolated", allowances=allowances, **more))
    assert done.exit_code == 0 and done.confined, done.stderr
    results: list[str] = json.loads(done.stdout)
    return results


async def test_of_the_machine_only_the_interpreter_and_what_is_named_is_read(
    mechanism: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = workspace / "home"
    files = [workspace / "the 'one' \"source\".txt", workspace / "other.txt", home / ".ssh" / "id", Path("/etc/passwd")]
    for path in files[:3]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (workspace / "link").symlink_to(files[0].name)
    monkeypatch.setenv("HOME", str(home))
    reads = [f"open({str(path)!r}).read()" for path in files]
    places = (str(home), "/etc/ssl", "/var", "/run", "/proc", "/sys", "/srv", "/usr/bin")
    lists = [f"os.listdir({path!r})" for path in places]
    results = await tried([*reads, *lists], str(workspace / "link"))
    assert results[0] == "'text'"
    assert {*results[1:]} <= {"FileNotFoundError", "PermissionError"}, results
    names = ("ctypes", "json", "mmap", "re", "zlib", "threading", "statistics")
    assert await tried([f"__import__({name!r}).__name__" for name in names]) == [repr(name) for name in names]


@pytest.mark.skipif(os.geteuid() != 0, reason="files of other users are made by root")
async def test_root_reads_what_another_user_owns_and_has_closed(mechanism: str, workspace: Path) -> None:
    folder = workspace / "theirs"
    folder.mkdir()
    for name in ("source", "other"):
        (folder / name).write_text("text")
        (folder / name).chmod(0o600)
        os.chown(folder / name, 1001, 1001)
    folder.chmod(0o700)
    os.chown(folder, 1001, 1001)
    results = await tried([f"open({str(folder / name)!r}).read()" for name in ("source", "other")], f"{folder}/source")
    assert results[0] == "'text'" and results[1] in ("FileNotFoundError", "PermissionError")


async def test_nothing_is_written_sent_or_started_but_threads(mechanism: str, workspace: Path) -> None:
    (workspace / "source").write_text("as it was")
    places = ("/new", "/tmp/new", "/var/tmp/new", "/dev/new", "/dev/shm/new", str(workspace / "new"),
              str(workspace / "source"), os.path.join(os.path.dirname(os.__file__), "new.py"))  # fmt: skip
    refused = [f"open({place!r}, 'ab')" for place in places]
    refused += ["os.fork()", "os.posix_spawn('/bin/true', ['true'], {})", "os.system('true') and 1 / 0"]
    refused += [f"__import__('_socket').socket({family})" for family in (1, 2, 10, 16)]
    refused += ["__import__('_socket').socketpair()", f"os.kill({os.getpid()}, 0)"]
    refused += [f"os.chmod({str(workspace / 'source')!r}, 0o777)", f"os.unlink({str(workspace / 'source')!r})"]
    results = await tried([*refused, "open('/dev/null', 'wb').write(b'x')"], str(workspace / "source"))
    assert results.pop() == "1"
    kinds = {"FileNotFoundError", "PermissionError", "OSError", "ZeroDivisionError", "ProcessLookupError"}
    assert {*results} <= kinds, dict(zip(refused, results, strict=True))
    assert (workspace / "source").read_text() == "as it was" and os.listdir(workspace) == ["source"]
    thread = "(one := __import__('threading').Thread(target=print)).start() or one.join()"
    assert (await tried([f"{thread} or 7"], str(workspace)))[-1:] == ["7"]


async def test_nothing_of_the_persons_environment_is_passed_on(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/of/the/person")
    results = await tried(["'/of/the/person' in os.environ.values()", "os.environ['OURS']"], env={"OURS": "1"})
    assert results == ["False", "'1'"]


def test_a_prefix_shared_with_other_things_is_not_seen_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lib/python3.99/os.py", "lib/libpython3.99.so.1.0", "lib/mine/keys", "lib64/x"):
        (tmp_path / ".local" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".local" / name).write_text("")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / ".local"))
    lib = str(tmp_path / ".local" / "lib")
    assert lib in runtime_places()
    monkeypatch.setenv("HOME", str(tmp_path))
    shared = [path for path in runtime_places() if path.startswith(str(tmp_path))]
    assert sorted(shared) == [f"{lib}/libpython3.99.so.1.0", f"{lib}/python3.99"]


def test_on_a_mac_what_is_not_named_is_denied() -> None:
    wanted = Confinement(isolated=True, seen=('/Users/a/so"urce', "/opt/python/lib"))
    plan = seatbelt(("/opt/python/bin/python3", "x"), wanted, Site("/", "/", ""))
    text = plan.argv[2]
    assert text.startswith("(version 1)\n(deny default)\n") and text.count("(") == text.count(")")
    assert '(subpath "/Users/a/so\\"urce")' in text and '(subpath "/opt/python/lib")' in text
    assert '(allow process-exec (subpath "/opt/python/bin/python3"))' in text
    assert all(word not in text for word in ("process-fork", "network", "mach-lookup", "(allow file-read*)", "ipc"))
    assert text.count("file-write") == 1 and '(allow file-write-data (literal "/dev/null"))' in text
    assert plan.argv == (PROGRAM, "-p", text, "/opt/python/bin/python3", "x") and plan.env == {}
