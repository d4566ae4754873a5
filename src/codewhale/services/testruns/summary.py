"""What a test run's output says, in one line: counts, and the first tests that failed. Pure parsing."""

import re
from collections.abc import Callable

from msgspec import Struct

NAMES = 5
LINE = 300
FAILURE = 1_500
NO_TESTS = "no tests ran"

_ANSI = r"\x1b\[[0-9;]*m"
_PYTEST_TAIL = r"(?m)^=* ?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s"
_PYTEST_COUNT = r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)"
_PYTEST_NAME = r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$"
_UNITTEST_RAN = r"(?m)^Ran (\d+) tests? in"
_UNITTEST_END = r"(?m)^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$"
_UNITTEST_NAME = r"(?m)^(?:FAIL|ERROR): (.+)$"
_CARGO_RESULT = r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored"
_CARGO_NAME = r"(?m)^test (.+?) \.\.\. FAILED"
_CARGO_ERROR = r"(?m)^(error(?:\[E\d+\])?: .+(?:\n[ \t]+--> .+)?)"
_CARGO_PANIC = r"(?m)^thread '[^'\n]{1,200}' [^\n]{0,40}panicked at .+(?:\n.+)?"
_CARGO = r"(?:^|[\s;&|(/])cargo\s"
_GO_TEST = r"(?m)^[ \t]*--- (PASS|FAIL|SKIP): (\S+)"
_GO_PACKAGE = r"(?m)^(ok|FAIL) *\t(\S+)\s"
_GO_NONE = r"(?m)^\?[ \t]+\S+[ \t]+\[no test files\]"
_JEST = r"(?m)^[ \t]*Tests:?[ \t]+(.*\d+ (?:passed|failed).*)$"
_JEST_NAME = r"(?m)^[ \t]*(?:●|FAIL) +(.*(?: › | > ).*)$"
_TAP_COUNT = r"(?m)^(?:#|ℹ) (pass|fail|skipped) (\d+)$"
_TAP_NAME = r"(?m)^[ \t]*(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?$"
_MOCHA = r"(?m)^[ \t]*(\d+) (passing|failing|pending)\b"
_MOCHA_NAME = r"(?m)^[ \t]+\d+\) (.+)$"


class TestSummary(Struct, frozen=True):
    """Counts (None where the output does not say) and the names of the first failing tests."""

    passed: int | None
    failed: int | None
    skipped: int
    failing: tuple[str, ...]

    @property
    def ran(self) -> int:
        return (self.passed or 0) + (self.failed or 0)

    @property
    def none_ran(self) -> bool:
        return self.passed is not None and self.failed is not None and not self.ran

    def line(self) -> str:
        """ "3 passed, 1 failed, 2 skipped; failing: a, b"; "" when the output said nothing."""
        parts = [
            f"{count} {word}" for count, word in ((self.passed, "passed"), (self.failed, "failed")) if count is not None
        ]
        if self.none_ran:
            parts = [NO_TESTS]
        if self.skipped:
            parts.append(f"{self.skipped} skipped")
        text = ", ".join(parts)
        if self.failing:
            text += f"{'; ' if text else ''}failing: {', '.join(self.failing)}"
        return text[:LINE]


def summarise(stdout: str, stderr: str) -> TestSummary:
    """What the output of a test run says, whatever ran it: the first known form that matches."""
    text = re.sub(_ANSI, "", f"{stdout}\n{stderr}")
    for parse in _PARSERS:
        summary = parse(text)
        if summary is not None:
            return summary
    return TestSummary(None, None, 0, ())


def cargo_failure(command: str, stdout: str, stderr: str) -> str:
    """The compile errors, failing tests and panics of a failed cargo command; "" when it was none."""
    if not re.search(_CARGO, f"{command} "):
        return ""
    text = re.sub(_ANSI, "", f"{stderr}\n{stdout}")
    lines = [match.group(1) for match in re.finditer(_CARGO_ERROR, text)]
    lines += [f"test failed: {name}" for name in re.findall(_CARGO_NAME, text)]
    lines += [match.group() for match in re.finditer(_CARGO_PANIC, text)]
    return "\n".join(dict.fromkeys(lines))[:FAILURE]


def _pytest(text: str) -> TestSummary | None:
    tails = re.findall(_PYTEST_TAIL, text)
    if not tails and "no tests ran in" not in text:
        return None
    counts = {word: int(count) for count, word in re.findall(_PYTEST_COUNT, tails[-1] if tails else "")}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    return TestSummary(counts.get("passed", 0), failed, skipped, _names(_PYTEST_NAME, text))


def _unittest(text: str) -> TestSummary | None:
    ran = re.findall(_UNITTEST_RAN, text)
    if not ran:
        return None
    ends = re.findall(_UNITTEST_END, text)
    counts = (
        {name.strip(): int(count) for name, _, count in (part.partition("=") for part in ends[-1].split(",")) if count}
        if ends
        else {}
    )
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    return TestSummary(max(0, int(ran[-1]) - failed - skipped), failed, skipped, _names(_UNITTEST_NAME, text))


def _cargo(text: str) -> TestSummary | None:
    results = re.findall(_CARGO_RESULT, text)
    if not results:
        errors = re.findall(_CARGO_ERROR, text)
        return TestSummary(None, None, 0, tuple(error.split("\n")[0] for error in errors[:1])) if errors else None
    passed, failed, ignored = (sum(int(result[at]) for result in results) for at in range(3))
    return TestSummary(passed, failed, ignored, _names(_CARGO_NAME, text))


def _go(text: str) -> TestSummary | None:
    packages = re.findall(_GO_PACKAGE, text)
    if not packages:
        return TestSummary(0, 0, 0, ()) if re.search(_GO_NONE, text) else None
    tests = re.findall(_GO_TEST, text)
    failing = tuple(dict.fromkeys(name for word, name in tests if word == "FAIL"))
    bad = sum(1 for word, _ in packages if word == "FAIL")
    counted = any(word == "PASS" for word, _ in tests)
    passed = sum(1 for word, _ in tests if word == "PASS") if counted else len(packages) - bad
    failed = len(failing) if counted else bad
    return TestSummary(passed, failed, sum(1 for word, _ in tests if word == "SKIP"), failing[:NAMES])


def _jest(text: str) -> TestSummary | None:
    lines = re.findall(_JEST, text)
    if not lines:
        return None
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|todo)", lines[-1])}
    return TestSummary(
        counts.get("passed", 0), counts.get("failed", 0), counts.get("skipped", 0), _names(_JEST_NAME, text)
    )


def _tap(text: str) -> TestSummary | None:
    counts = {word: int(count) for word, count in re.findall(_TAP_COUNT, text)}
    if "pass" not in counts:
        return None
    return TestSummary(counts["pass"], counts.get("fail", 0), counts.get("skipped", 0), _names(_TAP_NAME, text))


def _mocha(text: str) -> TestSummary | None:
    counts = {word: int(count) for count, word in re.findall(_MOCHA, text)}
    if "passing" not in counts:
        return None
    return TestSummary(counts["passing"], counts.get("failing", 0), counts.get("pending", 0), _names(_MOCHA_NAME, text))


def _names(pattern: str, text: str) -> tuple[str, ...]:
    names = dict.fromkeys(" ".join(name.split()) for name in re.findall(pattern, text))
    return tuple(name[:120] for name in names)[:NAMES]


_PARSERS: tuple[Callable[[str], TestSummary | None], ...] = (_pytest, _unittest, _cargo, _go, _jest, _tap, _mocha)
