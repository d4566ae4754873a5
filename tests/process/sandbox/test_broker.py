"""New names at the top of a workspace that Landlock holds: real commands, answered by the broker of their launcher."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.process.confinement import CHOICE, LANDLOCK, sandbox
from codewhale.process.launch import Completed, Launch, run, start
from codewhale.process.sandbox.broker import ServedPlaces
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock_abi
from support.stage import until

pytestmark = pytest.mark.skipif(landlock_abi() < LEAST_ABI, reason="the kernel has no Landlock of the needed version")
HELD = (".envrc", ".vscode", ".ENVRC", ".Git", ".codewhale", "AGENTS.md", ".v\u017fcode", ".en\u200bvrc")


@pytest.fixture(autouse=True)
def by_landlock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(CHOICE, LANDLOCK)
    sandbox.cache_clear()
    if not sandbox().brokered:
        pytest.skip("the kernel lets no filter ask here")
    yield
    sandbox.cache_clear()


async def shell(line: str, workspace: Path) -> Completed:
    return await run(Launch(("/bin/sh", "-c", line), str(workspace), "workspace-write", workspace=str(workspace)))


async def python(code: str, workspace: Path) -> Completed:
    argv = ("/usr/bin/env", "python3", "-c", code, str(workspace))
    return await run(Launch(argv, str(workspace), "workspace-write", workspace=str(workspace)))


def repository(workspace: Path) -> None:
    for words in (("init", "-q"), ("config", "user.email", "a@b.c"), ("config", "user.name", "n")):
        subprocess.run(["git", *words], cwd=workspace, check=True)


def names(workspace: Path) -> set[str]:
    return {str(path.relative_to(workspace)) for path in workspace.rglob("*")}


async def test_new_files_and_folders_are_made_and_used(workspace: Path) -> None:
    line = (
        "set -e; touch x; mkdir -p a/b/c; echo one > a/b/c/f; echo two >> a/b/c/f; mv a/b/c/f a/g; ln a/g a/h\n"
        "ln -s g a/link; echo three >> a/link; cp -r a b; cp -a a c; rm -r a/b; rmdir b/b/c; truncate -s 3 x\n"
        "chmod 750 b; touch -d @1000 x; mv c d; rm a/h; sed -i s/one/ONE/ b/g; mkdir e/; mv e/ f/"
    )
    done = await shell(line, workspace)
    assert (done.exit_code, done.stderr) == (0, b"")
    expected = {"x", "a", "a/g", "a/link", "b", "b/b", "b/g", "b/h", "b/link"}
    assert names(workspace) == expected | {"d", "d/b", "d/b/c", "d/g", "d/h", "d/link", "f"}
    assert (workspace / "a" / "g").read_text() == "one\ntwo\nthree\n"
    assert (workspace / "b" / "g").read_text() == "ONE\ntwo\nthree\n"
    assert (workspace / "b").stat().st_mode & 0o777 == 0o750
    assert (workspace / "x").stat().st_mtime == 1000 and (workspace / "x").stat().st_size == 3


async def test_modes_follow_the_umask_of_the_caller(workspace: Path) -> None:
    done = await shell("umask 022; touch a; (umask 077; touch b; mkdir c; sh -c 'touch d'); touch e", workspace)
    assert done.exit_code == 0
    modes = {name: (workspace / name).stat().st_mode & 0o777 for name in "abcde"}
    assert modes == {"a": 0o644, "b": 0o600, "c": 0o700, "d": 0o600, "e": 0o644}


async def test_archives_environments_and_commits_work(workspace: Path) -> None:
    repository(workspace)
    line = (
        "set -e; mkdir t; for n in 1 2 3; do echo $n > t/$n; done; chmod 600 t/1; ln -s 1 t/link; tar cf t.tar t\n"
        "mkdir u; tar xpf t.tar -C u; git add t u; git commit -qm one; git checkout -qb other; echo 4 > t/4\n"
        "git add -A; git stash -q; git stash pop -q; git commit -qam two; git gc -q; git branch -D master main || :\n"
        "python3 -m venv --without-pip .venv; .venv/bin/python -c 'print(5)'"
    )
    done = await shell(line, workspace)
    assert done.exit_code == 0 and done.stdout.endswith(b"5\n"), done.stderr
    assert (await shell("git rev-list --count HEAD", workspace)).stdout == b"2\n"
    assert (workspace / "u" / "t" / "1").stat().st_mode & 0o777 == 0o600


async def test_settings_and_hooks_of_git_stay(workspace: Path) -> None:
    repository(workspace)
    shutil.rmtree(workspace / ".git" / "hooks", ignore_errors=True)
    before = (workspace / ".git" / "config").read_bytes()
    line = (
        "git config core.pager x; echo x > new; mv new .git/config; mkdir .git/hooks; mkdir h; mv h .git/hooks\n"
        "ln -s /tmp .git/Hooks; echo .. > .git/commondir; ln .git/config c; mv .git/config c; mkdir .git/worktrees\n"
        "mv .git old; ln -s .git/config k; echo y > k; rm .git/config; chmod 777 .git/config; touch .git/config.lock\n"
        "mv .git/config.lock .git/CONFIG; cd .git/objects && touch ../config.worktree; cd ../../ && rm -rf .git"
    )
    await shell(line, workspace)
    assert (workspace / ".git" / "config").read_bytes() == before
    assert not {"hooks", "Hooks", "commondir", "worktrees", "CONFIG", "config.worktree"} & set(
        os.listdir(workspace / ".git")
    )
    assert not (workspace / "old").exists() and not (workspace / "c").exists()


CALLS = """
import ctypes, os, sys
top, held = os.open('.', os.O_RDONLY), sys.argv[2]
libc = ctypes.CDLL(None)
os.mkdir('dir'); open('dir/file', 'w').write('x'); os.mkdir('dir/sub')
spellings = (held, './' + held, './/' + held, 'dir/../' + held, 'dir/sub/../../' + held, os.getcwd() + '/' + held,
             os.getcwd() + '//./' + held, '/proc/self/cwd/' + held, f'/proc/self/fd/{top}/' + held)
def one(call, *args, **more):
    try: call(*args, **more)
    except OSError: return
    print('made', call, args)
for name in spellings:
    one(os.open, name, os.O_CREAT | os.O_WRONLY); one(os.mkdir, name); one(os.rename, 'dir/file', name)
    one(os.rename, 'dir/sub', name); one(os.link, 'dir/file', name); one(os.symlink, 'dir', name)
    one(os.mkfifo, name); one(os.mknod, name); one(os.replace, 'dir/file', name)
one(os.open, held, os.O_CREAT | os.O_RDWR, dir_fd=top); one(os.mkdir, held, dir_fd=top)
one(os.rename, 'dir/sub', held, dst_dir_fd=top); one(os.symlink, 'x', held, dir_fd=top)
sub = os.open('dir/sub', os.O_RDONLY)
one(os.mkdir, '../../' + held, dir_fd=sub); one(os.link, 'dir/file', '../../' + held, dst_dir_fd=sub)
os.symlink(held, 'way'); one(os.open, 'way', os.O_CREAT | os.O_WRONLY)
if libc.renameat2(-100, b'dir/sub', -100, held.encode(), 1) == 0: print('made by renameat2')
if libc.creat(held.encode(), 0o644) >= 0: print('made by creat')
fd = os.open('.', os.O_TMPFILE | os.O_WRONLY)
if libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, held.encode(), 0x400) == 0: print('made of a nameless file')
if libc.linkat(fd, b'', -100, held.encode(), 0x1000) == 0: print('made of a descriptor')
print('done')
"""


@pytest.mark.parametrize("held", HELD)
async def test_no_call_and_no_spelling_makes_a_protected_name(workspace: Path, held: str) -> None:
    argv = ("/usr/bin/env", "python3", "-c", CALLS, str(workspace), held)
    done = await run(Launch(argv, str(workspace), "workspace-write", workspace=str(workspace)))
    assert done.stdout.endswith(b"done\n"), done.stderr
    assert os.listdir(workspace / "dir") and not os.path.lexists(workspace / held), done.stdout
    assert b"made" not in done.stdout, done.stdout


async def test_what_leads_outside_is_not_followed(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("as it was\n")
    os.utime(outside / "file", (1, 1))
    line = (
        "ln -s ../outside/file a; echo x > a; echo x >> a; chmod 777 a; touch a; truncate -s 0 a; ln -s ../outside d\n"
        "echo x > d/new; mkdir d/sub; touch d/file; chmod 777 d d/file; ln d/file here; mv d/file .; rm d/file\n"
        "ln -s ../outside/fresh f; echo x > f; cd d && touch ../../outside/more; touch more; chmod 777 .; rm -rf ."
    )
    await shell(line, workspace)
    await python(f"import os; os.fchmod(os.open('{outside}/file', os.O_RDONLY), 0o777)", workspace)
    assert os.listdir(outside) == ["file"] and (outside / "file").read_text() == "as it was\n"
    state = (outside / "file").stat()
    assert (state.st_mtime, state.st_mode & 0o777, state.st_nlink) == (1, 0o644, 1)
    assert outside.stat().st_mode & 0o777 == 0o755 and not (workspace / "here").exists()


SWAPPED = """
import ctypes, os, sys, threading, time
outside = sys.argv[1] + '/../outside/x'
good, bad, held = b'ok', outside.encode(), b'.envrc'
room = ctypes.create_string_buffer(200)
stop = False
def swap():
    while not stop:
        for text in (good, held, bad): ctypes.memmove(room, text + b'\\0', len(text) + 1)
os.mkdir('real'); os.symlink('real', 'turn'); os.symlink('../outside', 'away')
def turn():
    while not stop:
        for target in ('real', '../outside'):
            os.symlink(target, 'next'); os.rename('next', 'turn')
for one in (swap, turn): threading.Thread(target=one, daemon=True).start()
libc, until = ctypes.CDLL(None), time.monotonic() + 3
while time.monotonic() < until:
    fd = libc.open(room, 0o101, 0o644)
    if fd >= 0: os.close(fd)
    libc.mkdir(room, 0o755); libc.chmod(room, 0o777); libc.symlink(b'real', room); libc.rename(b'real/y', room)
    libc.mkdir(b'turn/made', 0o755); libc.chmod(b'turn/file', 0o777)
    fd = libc.open(b'turn/y', 0o101, 0o644)
    if fd >= 0: os.close(fd)
stop = True
print('done')
"""


async def test_paths_that_change_during_the_call_gain_nothing(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "file").touch(0o600)
    done = await python(SWAPPED, workspace)
    assert done.stdout == b"done\n", done.stderr
    assert os.listdir(outside) == ["file"] and (outside / "file").stat().st_mode & 0o777 == 0o600
    assert not os.path.lexists(workspace / ".envrc")


async def test_calls_fail_as_the_kernel_would_say(workspace: Path) -> None:
    code = """
import errno, os
os.mkdir('d'); open('d/f', 'w').close(); os.symlink('loop', 'loop'); os.mkdir('shut'); os.chmod('shut', 0o555)
def one(call, *args, **more):
    try: call(*args, **more)
    except OSError as error: return errno.errorcode[error.errno]
    return 'ok'
print(one(os.mkdir, 'd'), one(os.rmdir, 'd'), one(os.unlink, 'none'), one(os.open, 'none', os.O_WRONLY),
      one(os.open, 'd/f', os.O_CREAT | os.O_EXCL | os.O_WRONLY), one(os.open, 'd', os.O_WRONLY),
      one(os.open, 'loop', os.O_CREAT | os.O_WRONLY), one(os.rename, 'none', 'd/x'), one(os.open, 'd/f/x', os.O_CREAT),
      one(os.rename, 'd/f', os.environ['TMPDIR'] + '/f'), one(os.chown, 'd', os.getuid(), -1),
      one(os.open, 'x' * 300, os.O_CREAT | os.O_WRONLY), one(os.chmod, 'none', 0o600), one(os.mkdir, ''))
fd = os.open('d/g', os.O_CREAT | os.O_RDWR | os.O_APPEND)
import fcntl
print(oct(fcntl.fcntl(fd, fcntl.F_GETFL) & 0o6003), fcntl.fcntl(fd, fcntl.F_GETFD), os.get_inheritable(fd))
import tempfile; print(tempfile.TemporaryFile(dir='.').write(b'x'))
"""
    done = await python(code, workspace)
    assert done.stdout.decode().splitlines() == [
        "EEXIST ENOTEMPTY ENOENT ENOENT EEXIST EISDIR ELOOP ENOENT ENOTDIR EXDEV ok ENAMETOOLONG EPERM ENOENT",
        "0o2002 1 False",
        "1",
    ], done.stderr


async def test_background_processes_are_served_until_the_tree_ends(workspace: Path) -> None:
    line = "(sleep 0.3; mkdir late; touch late/x; exec sleep 600) & echo out"
    child = await start(Launch(("/bin/sh", "-c", line), str(workspace), "workspace-write", supervised=True))
    await child.wait()
    await until((workspace / "late" / "x").exists)
    await child.kill()
    await child.ended()
    assert child.leftovers == 0


async def test_many_files_in_a_new_folder(workspace: Path) -> None:
    code = """
import os, threading
def fill(part):
    for n in range(500):
        os.makedirs(f'node_modules/{part}/{n % 50}', exist_ok=True)
        with open(f'node_modules/{part}/{n % 50}/{n}.js', 'w') as file: file.write(str(n))
threads = [threading.Thread(target=fill, args=(part,)) for part in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(len(os.listdir('/proc/self/fd')))
"""
    done = await python(code, workspace)
    assert done.exit_code == 0 and int(done.stdout) < 8, done.stderr
    assert sum(path.is_file() for path in (workspace / "node_modules").rglob("*")) == 2000


def test_places_know_what_is_held() -> None:
    places = ServedPlaces(["tops=/w", "hold=.git", "hold=tools", "hold=stra\u00dfe", "tops=/w/.git", "hold=config"])
    for path in ("/w", "/w/a", "/w/a/.git/config", "/w/.git/index", "/w/.git", "/w/config"):
        assert places.serves(path.encode()), path
    for path in ("/", "/wx", "/w/.GIT/x", "/w/tools/x/y", "/w/.git/config", "/w/.git/CONFIG/x", "/w/STRASSE"):
        assert not places.serves(path.encode()), path
    assert not places.has_entry(b"/w", b".git") and places.has_entry(b"/w", b"a")
