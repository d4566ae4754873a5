"""Nothing outside a root is reached, by the kernel's resolution and by ours."""

import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest

from codewhale.lib.beneath import PathRefused, Root
from support.flipper import while_flipping

HOSTILE = [
    "../x", "/etc/passwd", "a/../../x", "C:\\x", "C:/x", "c:x", "\\\\server\\share\\x", "//server/share/x", "a\0b", "",
    "name.", "name ", "dir./x", "dir /x", "...", "..\\x", "a\\..\\..\\x", "a/..\\..\\x", "~", "~/.ssh/id", "a\ud800b",
    "a/../..", "./../x", "/",
]  # fmt: skip


@pytest.fixture(params=[True, False], ids=["kernel", "by hand"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    (tmp_path / "w" / "sub").mkdir(parents=True)
    (tmp_path / "w" / "sub" / "f").write_text("inside")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_text("secret")
    return Root(str(tmp_path / "w"), kernel=request.param)


def read(root: Root, path: str) -> str:
    fd = root.open(path, os.O_RDONLY)
    with os.fdopen(fd) as stream:
        return stream.read()


def link(root: Root, name: str, target: str) -> None:
    os.symlink(target, os.path.join(root.path, name))


@pytest.mark.parametrize("path", HOSTILE)
def test_b1_hostile_spellings_are_refused(root: Root, path: str) -> None:
    for use in (root.relative, root.stat, root.scandir, root.resolve, lambda p: root.open(p, os.O_RDONLY)):
        with pytest.raises(PathRefused):
            use(path)


def test_b1_harmless_spellings_are_normalised(root: Root) -> None:
    assert root.relative("sub//./f") == root.relative("sub/../sub/f") == "sub/f"
    assert root.relative(root.path + "/sub/f") == "sub/f"
    assert root.relative(root.path) == root.relative(".") == root.relative("./") == "."
    assert root.relative("a\\b") == "a\\b"
    assert root.relative(".hidden/..name/ x") == ".hidden/..name/ x"
    assert read(root, "sub/../sub/f") == "inside"


def test_b5_a_sibling_that_shares_the_prefix_is_outside(root: Root) -> None:
    os.mkdir(root.path + "-evil")
    Path(root.path + "-evil", "x").write_text("secret")
    for path in (root.path + "-evil/x", "../w-evil/x"):
        with pytest.raises(PathRefused):
            root.relative(path)


def test_a_root_reached_through_a_link_takes_both_spellings(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    root = Root(str(tmp_path / "alias"))
    assert root.relative(str(tmp_path / "alias" / "x")) == root.relative(str(tmp_path / "real" / "x")) == "x"


@pytest.mark.parametrize("target", ["../out/f", "/etc/passwd", "../out/nothing", "/nowhere/at/all", "../../../../etc"])
def test_b2_a_link_out_is_refused_as_leaf(root: Root, target: str) -> None:
    link(root, "l", target)
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
        with pytest.raises(PathRefused):
            root.open("l", flags)
    for use in (root.stat, root.scandir, root.resolve):
        with pytest.raises(PathRefused):
            use("l")


@pytest.mark.parametrize("target", ["../out", "/etc", "../nothing", "sub/../../out"])
def test_b2_a_link_out_is_refused_as_parent(root: Root, target: str) -> None:
    link(root, "l", target)
    for path in ("l/f", "l/new", "l/deep/er"):
        with pytest.raises(PathRefused):
            root.open(path, os.O_WRONLY | os.O_CREAT)
        with pytest.raises(PathRefused):
            root.resolve(path)
        with pytest.raises(PathRefused):
            root.open_dir(path, create=True)
    assert sorted(os.listdir(os.path.join(root.path, "..", "out"))) == ["f"]


def test_links_inside_are_followed(root: Root) -> None:
    link(root, "rel", "sub/f")
    link(root, "abs", root.path + "/sub/f")
    link(root, "dir", "./sub")
    link(root, "sub/up", "../sub/f")
    link(root, "chain", "dir/up")
    link(root, "rootlink", root.path)
    for path in ("rel", "abs", "dir/f", "sub/up", "chain", "rootlink/sub/f"):
        assert read(root, path) == "inside"
        assert root.resolve(path) == "sub/f"
        assert root.stat(path).st_size == 6
    assert [name for name, _, _ in root.scandir("rootlink/dir")] in (["f", "up"], ["up", "f"])


def test_links_can_be_refused_altogether(root: Root) -> None:
    link(root, "dir", "sub")
    link(root, "leaf", "sub/f")
    for path in ("dir/f", "leaf"):
        with pytest.raises(OSError):
            root.open(path, os.O_RDONLY, links=False)
    assert read(root, "sub/f") == "inside"


def test_circles_end(root: Root) -> None:
    link(root, "a", "b")
    link(root, "b", "a")
    for use in (root.stat, root.resolve, root.scandir):
        with pytest.raises(OSError):
            use("a")


def test_creating_and_listing(root: Root) -> None:
    os.close(root.open_dir("x/y/z", create=True))
    os.close(root.open("x/y/z/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640))
    link(root, "x/y/l", "z")
    assert sorted(root.scandir("x/y")) == [("l", False, True), ("z", True, False)]
    assert len(root.scandir("x/y", 1)) == 1
    assert root.resolve("x/y/l/not/there") == "x/y/z/not/there"
    link(root, "dangling", "sub/made")
    os.close(root.open("dangling", os.O_WRONLY | os.O_CREAT))
    assert os.path.exists(os.path.join(root.path, "sub", "made"))
    with pytest.raises(FileNotFoundError):
        root.open_dir("nothing")
    with pytest.raises(NotADirectoryError):
        root.stat("sub/f/x")


def test_special_files_and_magic_links(root: Root) -> None:
    os.mkfifo(os.path.join(root.path, "pipe"))
    assert root.stat("pipe").st_mode & 0o170000 == 0o010000
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(root.path)
    try:
        server.bind("s")
    finally:
        os.chdir(here)
        server.close()
    assert root.stat("s").st_mode & 0o170000 == 0o140000
    link(root, "magic", "/proc/self/root/etc/passwd")
    with pytest.raises(PathRefused):
        root.stat("magic")


def test_descriptors_are_not_inherited_and_not_leaked(root: Root) -> None:
    link(root, "out", "../out")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    fd = root.open("sub/f", os.O_RDONLY)
    assert not os.get_inheritable(fd)
    os.close(fd)
    for path in ("out/f", "sub/f/x", "nothing", "sub"):
        for use in (root.stat, root.scandir, root.resolve):
            with contextlib.suppress(OSError, PathRefused):
                use(path)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names at once is Linux's")
def test_b3_a_parent_that_flips_never_leads_out(root: Root) -> None:
    os.mkdir(os.path.join(root.path, "d"))

    def attempt(number: int) -> None:
        fd = root.open(f"d/{number % 50}", os.O_WRONLY | os.O_CREAT, links=bool(number % 2))
        os.write(fd, b"payload")
        os.close(fd)

    done, refused = while_flipping(Path(root.path), 100_000, attempt)
    assert os.listdir(os.path.join(root.path, "..", "out")) == ["f"]
    assert Path(root.path, "..", "out", "f").read_text() == "secret"
    assert done and refused
