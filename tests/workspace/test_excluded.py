"""What is left out by name."""

from codewhale.workspace.ignore import EXCLUDES, is_unread, unread_folders


def test_names() -> None:
    assert is_unread("a/Cargo.lock") and is_unread("x.min.js") and not is_unread("lock.py")
    assert {"node_modules", "target", "venv"} <= unread_folders() and "vendor" not in unread_folders()
    assert "*.plist" in EXCLUDES and "build" in EXCLUDES
