"""What each session knows of each file."""

from codewhale.workspace.files.workspace import ReadLedger


def test_the_ledger_forgets_the_longest_unused() -> None:
    ledger = ReadLedger()
    for number in range(5000):
        ledger.note("s", f"f{number}", "x")
    assert ledger.known("s", "f0") is None and ledger.known("s", "f4999") == "x"
    for number in range(100):
        ledger.note(f"s{number}", "f", "x")
    assert ledger.known("s", "f4999") is None and ledger.known("s99", "f") == "x"
    ledger.note("s99", "f", None)
    assert ledger.known("s99", "f") is None
    ledger.note("", "f", "x")
    assert ledger.known("", "f") is None
