"""The tables of files that make others run things: well-formed, and without a name that is nobody's."""

from codewhale.permissions.paths import matches, started_by
from codewhale.protocol.protected import GIT_LAYOUT, STARTED


def test_every_name_stands_once_and_every_pattern_can_be_read() -> None:
    for table in ([pattern for pattern, _ in STARTED], GIT_LAYOUT):
        assert len(table) == len(set(table))
    for pattern, who in STARTED:
        assert not matches(pattern, "src/a.py") and who.startswith("is ")


def test_everyday_files_are_nobodys() -> None:
    everyday = ("README.md", "src/app.py", "package.json", "pyproject.toml", "Makefile", "Cargo.toml", ".gitignore",
                ".editorconfig", "tests/conftest.py", ".github/ISSUE_TEMPLATE/bug.md", "docs/in/out.md", "Dockerfile",
                ".env.example", "setup.py", "main.go", "src/config", ".gitattributes", "scripts/mise.py")  # fmt: skip
    assert [name for name in everyday if started_by(name)] == []
