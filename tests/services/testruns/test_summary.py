"""What the output of each known runner says, in one line."""

import pytest

from codewhale.services.testruns.summary import cargo_failure, summarise
from support.patience import Moment

PYTEST = """
=================================== FAILURES ===================================
E       assert 1 == 2
=========================== short test summary info ============================
FAILED test_a.py::test_one - assert 1 == 2
FAILED test_a.py::test_two[a b] - ValueError
ERROR test_b.py - ImportError
============= 2 failed, 5 passed, 1 skipped, 1 error in 0.31s ==================
"""
UNITTEST = """
======================================================================
FAIL: test_x (tests.test_a.Case.test_x)
----------------------------------------------------------------------
Ran 4 tests in 0.001s

FAILED (failures=1, skipped=1)
"""
CARGO = """
running 3 tests
test a::one ... ok
test a::two ... FAILED
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
GO = "--- FAIL: TestTwo (0.00s)\n    a_test.go:3: no\nFAIL\nFAIL\texample.com/a\t0.1s\nok  \texample.com/b\t0.1s\n"
JEST = "  ● Math › adds numbers\n\nTests:       1 failed, 2 passed, 3 total\nTime: 1 s\n"
VITEST = " FAIL  src/a.test.ts > sums > adds\n\n Test Files  1 failed (1)\n      Tests  1 failed | 4 passed (5)\n"
TAP = "TAP version 13\nok 1 - one\nnot ok 2 - two\n# tests 2\n# pass 1\n# fail 1\n# skipped 0\n"
SPEC = "✔ one (0.5ms)\n✖ two (1.5ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\n"
MOCHA = "\n  3 passing (5ms)\n  1 failing\n\n  1) Array\n       indexOf:\n"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (PYTEST, "5 passed, 3 failed, 1 skipped; failing: test_a.py::test_one, test_a.py::test_two[a b], test_b.py"),
        ("\x1b[32m3 passed\x1b[0m in 0.10s\n", "3 passed, 0 failed"),
        ("\nno tests ran in 0.00s\n", "no tests ran"),
        ("Ran 0 tests in 0.0s\n\nOK\n", "no tests ran"),
        ("Ran 2 tests in 0.0s\n\nOK (skipped=2)\n", "no tests ran, 2 skipped"),
        ("?   \texample.com/a\t[no test files]\n", "no tests ran"),
        ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n", "no tests ran"),
        (UNITTEST, "2 passed, 1 failed, 1 skipped; failing: test_x (tests.test_a.Case.test_x)"),
        ("Ran 3 tests in 0.0s\n\nOK\n", "3 passed, 0 failed"),
        (CARGO, "3 passed, 1 failed, 1 skipped; failing: a::two"),
        ("error[E0425]: cannot find value `x`\n  --> src/lib.rs:1:5\n", "failing: error[E0425]: cannot find value `x`"),
        (GO, "1 passed, 1 failed; failing: TestTwo"),
        (JEST, "2 passed, 1 failed; failing: Math › adds numbers"),
        (VITEST, "4 passed, 1 failed; failing: src/a.test.ts > sums > adds"),
        (TAP, "1 passed, 1 failed; failing: two"),
        (SPEC, "1 passed, 1 failed; failing: two"),
        (MOCHA, "3 passed, 1 failed; failing: Array"),
        ("make: nothing to be done\n", ""),
    ],
)  # fmt: skip
def test_one_line(output: str, line: str) -> None:
    assert summarise(output, "").line() == line
    assert summarise("", output).line() == line


def test_the_line_is_short_and_names_are_few() -> None:
    many = "".join(f"FAILED tests/test_a.py::test_{'x' * 200}_{number}\n" for number in range(50))
    summary = summarise(f"{many}50 failed in 1.00s\n", "")
    assert len(summary.failing) == 5 and len(summary.line()) <= 300


def test_cargo_failure_names_errors_tests_and_panics() -> None:
    stderr = "error[E0308]: mismatched types\n --> src/lib.rs:3:5\n\nerror: could not compile `a`\n"
    stdout = "test a::two ... FAILED\nthread 'a::two' panicked at src/lib.rs:9:5:\nassertion failed\n"
    text = cargo_failure("cd a && cargo test", stdout, stderr)
    assert "E0308" in text and "src/lib.rs:3:5" in text and "test failed: a::two" in text and "assertion failed" in text


@pytest.mark.parametrize("command", ["make", "echo cargo", "./cargoish test"])
def test_other_commands_have_no_cargo_failure(command: str) -> None:
    assert cargo_failure(command, "", "warning: nothing") == ""


@pytest.mark.parametrize(
    "piece",
    ["11 ", "1 a1 ", "\n", " \n", "\t", "=", "Tests: 1", "thread '", "error: a\n", "● > ", "FAIL", "not ok 1"],
)
def test_no_output_takes_long_to_read(piece: str) -> None:
    began = Moment()
    text = (piece * 40_000)[:40_000]
    summarise(text, f"{text}x")
    cargo_failure("cargo test", text, text)
    assert not began.hung
