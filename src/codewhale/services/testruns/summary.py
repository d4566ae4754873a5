"""What a test run's output says, in one line: counts, and the first tests that failed. Pure parsing."""

import re
from collections.abc import Callable

from msgspec import Struct

NAMES = 5
LINE = 300
FAILURE = 1_500

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PYTEST_TAIL = re.compile(r"^=*\s*((?:\d+ \w+,? ?)+) in [\d.]+s.*$", re.MULTILINE)
_PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
_PYTEST_NAME = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
_UNITTEST_END = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", re.MULTILINE)
_UNITTEST_NAME = re.compile(r"^(?:FAIL|ERROR): (.+)$", re.MULTILINE)
_CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
_CARGO_NAME = re.compile(r"^test (.+?) \.\.\. FAILED", re.MULTILINE)
_CARGO_ERROR = re.compile(r"^(error(?:\[E\d+\])?: .+(?:\n\s+--> .+)?)", re.MULTILINE)
_CARGO_PANIC = re.compile(r"^thread '.*' .*panicked at .+(?:\n.+)?", re.MULTILINE)
_CARGO = re.compile(r"(?:^|[\s;&|(/])cargo\s")
_GO_TEST = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
_GO_PACKAGE = re.compile(r"^(ok|FAIL) *\t(\S+)\s", re.MULTILINE)
_JEST = re.compile(r"^\s*Tests:?\s+(.*\d+ (?:passed|failed).*)$", re.MULTILINE)
_JEST_NAME = re.compile(r"^\s*(?:●|FAIL) +(.*(?: › | > ).*)$", re.MULTILINE)
_TAP_COUNT = re.compile(r"^(?:#|ℹ) (pass|fail|skipped) (\d+)$", re.MULTILINE)
_TAP_NAME = re.compile(r"^\s*(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?$", re.MULTILINE)
_MOCHA = re.compile(r"^\s*(\d+) (passing|failing|pending)\b", re.MULTILINE)
_MOCHA_NAME = re.compile(r"^\s+\d+\) (.+)$", re.MULTILINE)


class TestSummary(Struct, frozen=True):
    """Counts (None where the output does not say) and the names of the first failing tests."""

    passed: int | None
    failed: int | None
    skipped: int
    failing: tuple[str, ...]

    def line(self) -> str:
        """ "3 passed, 1 failed, 2 skipped; failing: a, b"; "" when the output said nothing."""
        parts = [
            f"{count} {word}" for count, word in ((self.passed, "passed"), (self.failed, "failed")) if count is not None
        ]
        if self.skipped:
            parts.append(f"{self.skipped} skipped")
        text = ", ".join(parts)
        if self.failing:
            text += f"{'; ' if text else ''}failing: {', '.join(self.failing)}"
        return text[:LINE]


def summarise(stdout: str, stderr: str) -> TestSummary:
    """What the output of a test run says, whatever ran it: the first known form that matches."""
    text = _ANSI.sub("", f"{stdout}\n{stderr}")
    for parse in _PARSERS:
        found = parse(text)
        if found is not None:
            return found
    return TestSummary(None, None, 0, ())


def cargo_failure(command: str, stdout: str, stderr: str) -> str:
    """The compile errors, failing tests and panics of a failed cargo command; "" when it was none."""
    if not _CARGO.search(f"{command} "):
        return ""
    text = _ANSI.sub("", f"{stderr}\n{stdout}")
    found = [match.group(1) for match in _CARGO_ERROR.finditer(text)]
    found += [f"test failed: {name}" for name in _CARGO_NAME.findall(text)]
    found += [match.group() for match in _CARGO_PANIC.finditer(text)]
    return "\n".join(dict.fromkeys(found))[:FAILURE]


def _pytest(text: str) -> TestSummary | None:
    tails = _PYTEST_TAIL.findall(text)
    if not tails and "no tests ran in" not in text:
        return None
    counts = {word: int(count) for count, word in _PYTEST_COUNT.findall(tails[-1] if tails else "")}
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    return TestSummary(counts.get("passed", 0), failed, skipped, _names(_PYTEST_NAME, text))


def _unittest(text: str) -> TestSummary | None:
    ran = _UNITTEST_RAN.findall(text)
    if not ran:
        return None
    ends = _UNITTEST_END.findall(text)
    counts = (
        {name.strip(): int(count) for name, _, count in (part.partition("=") for part in ends[-1].split(",")) if count}
        if ends
        else {}
    )
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    return TestSummary(max(0, int(ran[-1]) - failed - skipped), failed, skipped, _names(_UNITTEST_NAME, text))


def _cargo(text: str) -> TestSummary | None:
    results = _CARGO_RESULT.findall(text)
    if not results:
        errors = _CARGO_ERROR.findall(text)
        return TestSummary(None, None, 0, tuple(error.split("\n")[0] for error in errors[:1])) if errors else None
    passed, failed, ignored = (sum(int(result[at]) for result in results) for at in range(3))
    return TestSummary(passed, failed, ignored, _names(_CARGO_NAME, text))


def _go(text: str) -> TestSummary | None:
    packages = _GO_PACKAGE.findall(text)
    if not packages:
        return None
    tests = _GO_TEST.findall(text)
    failing = tuple(dict.fromkeys(name for word, name in tests if word == "FAIL"))
    bad = sum(1 for word, _ in packages if word == "FAIL")
    counted = any(word == "PASS" for word, _ in tests)
    passed = sum(1 for word, _ in tests if word == "PASS") if counted else len(packages) - bad
    failed = len(failing) if counted else bad
    return TestSummary(passed, failed, sum(1 for word, _ in tests if word == "SKIP"), failing[:NAMES])


def _jest(text: str) -> TestSummary | None:
    lines = _JEST.findall(text)
    if not lines:
        return None
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|todo)", lines[-1])}
    return TestSummary(
        counts.get("passed", 0), counts.get("failed", 0), counts.get("skipped", 0), _names(_JEST_NAME, text)
    )


def _tap(text: str) -> TestSummary | None:
    counts = {word: int(count) for word, count in _TAP_COUNT.findall(text)}
    if "pass" not in counts:
        return None
    return TestSummary(counts["pass"], counts.get("fail", 0), counts.get("skipped", 0), _names(_TAP_NAME, text))


def _mocha(text: str) -> TestSummary | None:
    counts = {word: int(count) for count, word in _MOCHA.findall(text)}
    if "passing" not in counts:
        return None
    return TestSummary(counts["passing"], counts.get("failing", 0), counts.get("pending", 0), _names(_MOCHA_NAME, text))


def _names(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = dict.fromkeys(" ".join(name.split()) for name in pattern.findall(text))
    return tuple(name[:120] for name in found)[:NAMES]


_PARSERS: tuple[Callable[[str], TestSummary | None], ...] = (_pytest, _unittest, _cargo, _go, _jest, _tap, _mocha)
