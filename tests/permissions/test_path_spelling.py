"""What a dressed path means: only what is there when it is read, only what may be made when it is written."""

from pathlib import Path

import pytest

from codewhale.lib.beneath import Root
from codewhale.permissions.path_spelling import bare, meant, undressed


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A workspace that is called project, with a file and a folder."""
    space = tmp_path / "project"
    (space / "src").mkdir(parents=True)
    (space / "app.py").write_text("")
    return Root(str(space))


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ('"a b.py"', "a b.py"), ("“x.py”", "x.py"), ("``x.py``", "x.py"), ('"x.py', "x.py"), ("x.py`", "x.py"),
        ("<file_path>x.py</file_path>", "x.py"), ("<x.py>", "x.py"), ("![x](x.py)", "x.py"), ("File: x.py", "x.py"),
        ("$(pwd)/x.py", "x.py"), ("$HOME/x.py", "x.py"), ("x.py:10-20", "x.py"), ("x.py#L1-L2", "x.py"),
        (' "`x.py`:3" \n', "x.py"), ("x.py", "x.py"), ("it's", "it's"), ("file:///x.py", "file:///x.py"),
        ("12:30", "12:30"), ("a[1].txt", "a[1].txt"), ("", ""), ("`", "`"), ("x" * 5000 + "`", "x" * 5000 + "`"),
    ],
)  # fmt: skip
def test_what_stands_around_a_path_is_taken_off(path: str, inner: str) -> None:
    assert bare(path) == inner


def test_only_what_is_there_is_meant(root: Root) -> None:
    assert meant(root, "`app.py`") == "app.py"
    for path in ("`nothing.py`", "app.py", "src", "../project/app.py", "/etc/passwd", "\0", "~/app.py", "a/b/app.py"):
        assert meant(root, path) == "", path


def test_a_new_file_keeps_a_name_that_can_be_meant(root: Root) -> None:
    for path in ("new.py", "new/deep/x.py", "a/deep/x.py", "src/@x.py", "@types/x.py", f"{root.path}/new.py", "../x"):
        assert undressed(root, path) == "", path
    assert undressed(root, "a/new.py") == undressed(root, "project/new.py") == "new.py"
    assert undressed(root, "a/new.py", folders=False) == ""


def test_what_leads_out_is_never_proposed(root: Root) -> None:
    for path in ("`../x`", '"/etc/x"', "a/../../x", "..\\x", "C:\\x"):
        assert undressed(root, path) == meant(root, path) == "", path
