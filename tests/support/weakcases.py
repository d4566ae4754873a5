"""Damaged calls as data: what a model sends, what is true afterwards, and how a run of the real program is judged.

A run is one `codewhale exec` over a fresh sample repository. The model sends its damage; is the effect not as meant by
the next request, it sends the right call once; then it answers in plain words.
"""

import asyncio
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codewhale.app.compose import AppOptions, open_app
from codewhale.protocol.events import TurnFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.testing import collect
from support.house import ROOT
from support.patience import HANG
from support.program import environment
from support.weakserver import Message, Say, Seat, WeakServer

FOLDER = ROOT / "tests" / "weakmodel"
SECONDS = HANG
DONE = "All done."
_NOTES = "".join(f"line {number} of the notes{' MARK_NOTES' if number == 3 else ''}\n" for number in range(1, 31))
SAMPLE = {
    "README.md": "# Sample\nMARK_README\n",
    "notes.txt": _NOTES,
    "src/app.py": 'NAME = "app"\nLIMIT = 10\n\n\ndef run():\n    return NAME  # MARK_APP\n',
    "src/other.py": "# MARK_OTHER\nOTHER = 1\n",
    "src/lower.py": "# needle\n",
    "src/upper.py": "# NEEDLE\n",
    "keep/important.txt": "important\n",
    "keep/cache/old.txt": "old\n",
}
GOOD = ("executed_right", "left_alone", "guarded")
WRONG = ("executed_wrong", "ran_what_must_not_run")
Tree = dict[str, str]


class Case(NamedTuple):
    """A case. `truth` is the effect as meant (`files` that differ from the sample, None for gone; `told` words that
    only a result can hold, `untold` ones that none may), `meanwhile` what may differ although the damage was refused,
    `useful` words one of which a refusal must hold, `untrue` ones it must not, `times` how often it is sent, `strict`:
    a refusal helps only with the right name in it."""

    id: str
    what: str
    sends: Mapping[str, Any]
    label: str
    truth: Mapping[str, Any] = {}
    right: tuple[Mapping[str, Any], ...] = ()
    meanwhile: Mapping[str, Any] = {}
    useful: tuple[str, ...] = ()
    untrue: tuple[str, ...] = ()
    times: int = 1
    strict: bool = False


class Played(NamedTuple):
    """What came of a case: its outcome as one word, the program's exit code, model requests, what a strict server
    rejected, whether that ended the session, and what the model was told of its damage."""

    outcome: str
    code: int
    requests: int
    rejected: str
    killed: bool
    told: str


class Ran(NamedTuple):
    """What a run gave: its exit code, its report, and what it said beside it."""

    code: int
    report: Mapping[str, Any]
    said: str


Run = Callable[[Path, Path, str], Ran]


def cases(name: str = "cases.json") -> list[Case]:
    """The cases of a file."""
    return [Case(**row) for row in json.loads((FOLDER / name).read_text(encoding="utf-8"))]


class Script:
    """The model of one run: damage first, the right call once where that was not enough, then plain words."""

    def __init__(self, case: Case, workspace: Path) -> None:
        self._case = case
        self._workspace = workspace
        self.at_second: Tree | None = None
        self.repaired = False

    def __call__(self, messages: list[Message], number: int) -> Say:
        """What is said to request `number`."""
        case = self._case
        if number <= case.times:
            return _numbered(case.sends, number)
        if self.at_second is None:
            self.at_second = tree(self._workspace)
            if case.right and not _holds(case.truth, self.at_second, _results(messages)):
                self.repaired = True
                return {"calls": [{**call, "arguments": json.dumps(call["arguments"])} for call in case.right]}
        return {"text": DONE}


def _numbered(sends: Say, number: int) -> Say:
    """The same words again, their calls under new ids."""
    if number == 1 or "calls" not in sends:
        return sends
    return {**sends, "calls": [{**call, "id": f"call_{number}_{place}"} for place, call in enumerate(sends["calls"])]}


def sample(folder: Path) -> Path:
    """The sample repository in a new folder."""
    for name, content in SAMPLE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def run_program(home: Path, workspace: Path, url: str, facts: str = "") -> Ran:
    """`codewhale exec` without a person, against a chat endpoint of which these facts are known."""
    _configure(home, url, facts)
    program = [sys.executable, "-m", "codewhale", "exec", "-w", str(workspace), "--yolo", "--output-format", "json"]
    try:
        done = subprocess.run(
            [*program, "Do the task."],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            cwd=home,
            env=environment(home, {"WEAK_KEY": "none"}),
            timeout=SECONDS,
            check=False,
        )
        return Ran(done.returncode, json.loads(done.stdout or "{}"), done.stderr)
    except subprocess.TimeoutExpired:
        return Ran(124, {}, "did not end in time")


def run_inside(home: Path, workspace: Path, url: str, facts: str = "") -> Ran:
    """The same without a process of its own: the application over the same configuration and endpoint."""
    _configure(home, url, facts)
    return asyncio.run(_turn(home / "state", workspace))


async def _turn(home: Path, workspace: Path) -> Ran:
    options = AppOptions(home=str(home), workspace=str(workspace))
    async with open_app(options, environ={"WEAK_KEY": "none"}) as app:
        session = await app.client.submit(OpenSession(str(workspace), Mode.YOLO, Authority.AUTO))
        events = app.client.events(session, from_seq=-1)
        waiting = asyncio.ensure_future(collect(events, SECONDS))
        await asyncio.sleep(0)
        await app.client.submit(SendMessage(session, "Do the task."))
        last = (await waiting)[-1].event
        assert isinstance(last, TurnFinished)
        return Ran(last.result["exit_code"], last.result, last.reason)


def _configure(home: Path, url: str, facts: str) -> None:
    state = home / "state"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    (state / "config.toml").write_text(
        f'provider = "weak"\nmodel = "weak"\n[providers.weak]\ndialect = "openai-chat"\nbase_url = "{url}"\n'
        f'api_key_env = "WEAK_KEY"\ncontext_window = 65536\nstream_retries = 1\nfacts = {{ {facts} }}\n'
    )


def play(case: Case, server: WeakServer, folder: Path, strict: bool = False, run: Run = run_program) -> Played:
    """Run a case through the program or what `run` is, in a new folder below `folder`, and judge it."""
    home = folder / re.sub(r"\W", "_", case.id) / ("strict" if strict else "lenient")
    workspace = sample(home / "workspace")
    sends = json.loads(json.dumps(case.sends).replace("{WORKSPACE}", str(workspace)))
    script = Script(case._replace(sends=sends), workspace)
    seat, url = server.seat(script, strict)
    done = run(home, workspace, url)
    return _judged(case, script, seat, done, tree(workspace))


def tree(folder: Path) -> Tree:
    """Every file's text and every folder below, the harness's own left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith((".codewhale", ".git")):
            found[name] = "" if path.is_dir() else path.read_bytes().decode("utf-8", "surrogateescape")
    return found


def _expected(files: Mapping[str, Any]) -> Tree:
    """The sample with some files different, `name/` for a new folder."""
    merged = {**SAMPLE, **files}
    found: Tree = {}
    for name, content in merged.items():
        if content is None:
            continue
        found.update((parent.as_posix(), "") for parent in Path(name).parents if parent.as_posix() != ".")
        found[name.rstrip("/")] = content
    return found


def _holds(truth: Mapping[str, Any], now: Tree, told: str) -> bool:
    return (
        now == _expected(truth.get("files", {}))
        and all(word in told for word in truth.get("told", ()))
        and not any(word in told for word in truth.get("untold", ()))
    )


def _results(messages: list[Message]) -> str:
    """The tool results behind the last message of the model."""
    last = max((place for place, message in enumerate(messages) if message["role"] == "assistant"), default=0)
    return "\n".join(_text(message) for message in messages[last:] if message["role"] == "tool")


def _news(before: list[Message], after: list[Message]) -> str:
    """What a request says that the one before did not, the model's own words left out."""
    return "\n".join(_text(message) for message in after[len(before) :] if message["role"] != "assistant")


def _text(message: Message) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _judged(case: Case, script: Script, seat: Seat, done: Ran, end: Tree) -> Played:
    asked = seat.requests
    told = _news(asked[case.times - 1], asked[case.times]) if len(asked) > case.times else ""
    outcome = _outcome(case, script, seat, done, end, told)
    killed = bool(seat.rejected) and done.report.get("answer") != DONE
    return Played(outcome, done.code, len(asked), seat.rejected, killed, told or done.said[-400:])


def _outcome(case: Case, script: Script, seat: Seat, done: Ran, end: Tree, told: str) -> str:
    asked = seat.requests
    if case.times > 1:
        return _loop_outcome(case, asked, end)
    first = script.at_second if script.at_second is not None else end
    if case.label != "executed_right" and first != _expected(case.meanwhile.get("files", {})):
        return "ran_what_must_not_run"
    if case.label == "left_alone":
        return "left_alone" if done.code == 0 and len(asked) == 1 else "crashed_or_stalled"
    second = asked[1] if len(asked) > 1 else []
    if second and not script.repaired and case.truth and done.code == 0:
        return "executed_right"
    if first != _expected(case.meanwhile.get("files", {})):
        return "executed_wrong"
    if not second:
        return "silently_ignored" if done.code == 0 else "crashed_or_stalled"
    if done.code or done.report.get("answer") != DONE:
        return "crashed_or_stalled"
    helps = any(word in told for word in case.useful) and not any(word in told for word in case.untrue)
    worked = len(asked) > 2 and _holds(case.truth, end, _results(asked[2]))
    return "refused_with_useful_error" if helps and worked else "refused_uselessly"


def _loop_outcome(case: Case, asked: list[list[Message]], end: Tree) -> str:
    """A loop is guarded when the model was told something new or was stopped before its last round."""
    if end != _expected({}):
        return "executed_wrong"
    news = [_news(before, after) for before, after in itertools.pairwise(asked)]
    warned = len(set(news)) > 1
    return "guarded" if len(asked) < case.times or warned else "unguarded"


def figures(played: Mapping[str, Played], named: Iterator[Case]) -> dict[str, Any]:
    """Success, strict success and what needed no extra turn, in percent, and counts of each outcome."""
    chosen = list(named)
    outcomes = [played[case.id].outcome for case in chosen]
    helped = [case for case in chosen if played[case.id].outcome == "refused_with_useful_error"]
    lax = [case for case in helped if case.strict and not any(name in played[case.id].told for name in _names(case))]
    good = sum(outcome in GOOD for outcome in outcomes)
    count = max(1, len(outcomes))
    return {
        "cases": len(outcomes),
        "success": round(100 * (good + len(helped)) / count, 1),
        "strict": round(100 * (good + len(helped) - len(lax)) / count, 1),
        "no_extra_turn": round(100 * good / count, 1),
        "wrong": sum(outcome in WRONG for outcome in outcomes),
        "outcomes": {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))},
    }


def _names(case: Case) -> list[str]:
    return [call["name"] for call in case.right]
