"""What a session must look like after its process was killed or its disk was full: the scripted session, the front
door, and the checks, shared by `crash.py`, `disasters.py` and the tests."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codewhale.cli.offline.stored_sessions import request_body, summaries

BIN = Path(sys.executable).parent
PATIENCE = 180.0  # a slow and busy machine is no hang
UNKNOWN = "Interrupted, outcome unknown"
NEVER = "Interrupted before it started"

Turns = list[dict[str, Any]]
Rows = list[dict[str, Any]]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a script."""
    return {"name": name, "arguments": arguments}


def effect(token: str) -> dict[str, Any]:
    """A command whose only effect is one line that no other call writes."""
    return call("exec_shell", command=f"echo {token} >> effects.txt")


def long_turns(seed: int, steps: int) -> Turns:
    """Commands that each leave one line, files written and overwritten, outputs large enough to be set aside."""
    script: Turns = []
    for step in range(steps):
        page = call("write_file", path=f"page_{step % 3}.txt", content=f"page {step:03}\n" * 50)
        script.append({"text": f"Step {step}.", "calls": [effect(f"step-{seed}-{step}")]})
        script.append({"calls": [page, call("list_dir"), call("read_file", path=f"page_{step % 3}.txt")]})
        if step % 3 == 1:
            script.append({"calls": [call("exec_shell", command=f"seq {step} 9000")]})
    return [*script, {"text": "All steps are done."}]


def last_turns(token: str) -> Turns:
    """What the model does with a session taken up again: one more effect and an answer."""
    return [{"text": "Once more.", "calls": [effect(token)]}, {"text": "Resumed and done."}]


class Door:
    """A home, a workspace and the front door to them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir(mode=0o700)
        self.work.mkdir()

    def configure(self, script: Turns) -> None:
        """Let the home's model be this script."""
        path = self.home / "script.jsonl"
        path.write_text("".join(json.dumps(turn) + "\n" for turn in script))
        (self.home / "config.toml").write_text(
            'provider = "scripted"\nmodel = "script"\n[providers.scripted]\ndialect = "scripted"\n'
            f"script = {json.dumps(str(path))}\n"
        )

    def environment(self, failpoints: str = "") -> dict[str, str]:
        """This process's environment with this home."""
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        named = {"CODEWHALE_HOME": str(self.home), "PATH": path, "CODEWHALE_FAILPOINTS": failpoints}
        return {**os.environ, **named}

    def live(self, prompt: str, *options: str, failpoints: str = "", seconds: float | None = None) -> "Life":
        """Run a prompt; SIGKILL it after `seconds`, when given."""
        command = [str(BIN / "codewhale"), "exec", "-w", str(self.work), "--yolo", "--output-format", "stream-json"]
        printed, said = self.home / ".printed", self.home / ".said"
        begun = time.monotonic()
        with printed.open("wb") as out, said.open("wb") as err:
            child = subprocess.Popen(
                [*command, *options, prompt],
                env=self.environment(failpoints), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip
            hung = False
            try:
                child.wait(PATIENCE if seconds is None else seconds)
            except subprocess.TimeoutExpired:
                hung = seconds is None
                child.send_signal(signal.SIGKILL)
                child.wait()
        took = time.monotonic() - begun
        return Life(printed.read_bytes(), said.read_text(errors="replace"), child.returncode, took, hung)

    def ask(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        """One other command of the front door, waited for."""
        return subprocess.run(
            [str(BIN / "codewhale"), *arguments],
            env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def begun(self) -> list[str]:
        """The sessions with a whole record, without touching anything."""
        logs = sorted((self.home / "sessions").glob("*/log.jsonl"))
        return [path.parent.name for path in logs if b"\n" in path.read_bytes()]

    def sessions(self) -> list[str]:
        """The sessions as they are listed."""
        return [row.id for row in summaries(str(self.home))]

    def effects(self) -> list[str]:
        """The lines that commands left."""
        path = self.work / "effects.txt"
        return path.read_text().split() if path.exists() else []


class Life(NamedTuple):
    """One process: what it printed, what it said on stderr, how it ended and after how many seconds."""

    printed: bytes
    said: str
    code: int
    seconds: float
    hung: bool

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it, ours or its own."""
        return self.code == -signal.SIGKILL and not self.hung

    @property
    def rows(self) -> Rows:
        """The whole lines printed."""
        return parse(self.printed)


def parse(printed: bytes) -> Rows:
    """The envelopes of whole lines."""
    return [json.loads(line) for line in printed[: printed.rfind(b"\n") + 1].split(b"\n") if line]


def judge(door: Door, session: str, lives: Sequence[Life], *, ask: bool = False) -> tuple[list[str], float]:
    """Take the session up again and say what is wrong with what its dead lives left; and how long that took. With
    `ask` the last request is also read through the front door."""
    token = f"again-{session}"
    door.configure(last_turns(token))
    last = door.live("Go on.", "--resume", session)
    faults = [f"printed twice in one life: {twice}" for life in (*lives, last) if (twice := doubled(life.rows))]
    end = last.rows[-1]["event"] if last.rows else {}
    if last.code or end.get("status") != "done":
        faults.append(f"resume ended with {last.code}: {last.said.strip()[-300:]}")
    shown = door.ask("sessions", "show", session, "--events")
    if shown.returncode:
        return [*faults, f"cannot be opened: {shown.stderr.decode().strip()[:300]}"], last.seconds
    rows = parse(shown.stdout)
    faults += [fault for life in (*lives, last) for fault in lost(life.rows, rows)]
    faults += log_faults(rows) + effect_faults(rows, door.effects()) + request_faults(door, session, rows)
    if token not in door.effects():
        events = [row["event"] for row in rows]
        told = [event["content"] for event in events if event["type"] == "call_finished"]
        faults.append(f"the new effect after resume is missing; its call said {(told or [''])[-1][-300:]!r}")
    if ask:
        number = str(sum(row["event"]["type"] == "request_sent" for row in rows))
        told = door.ask("sessions", "show", session, "--request", number).stdout
        if told != request_body(str(door.home), session, int(number)):
            faults.append(f"sessions show --request {number} shows something else")
    sizes = {path.stat().st_size for path in door.work.glob("page_*.txt")}
    return [*faults, *([f"half-written files: {sizes}"] if sizes - {450} else [])], last.seconds


def doubled(rows: Rows) -> list[int]:
    """Seqs that one life printed twice."""
    seqs = [row["seq"] for row in rows]
    return sorted({seq for seq in seqs if seqs.count(seq) > 1}) if len(set(seqs)) < len(seqs) else []


def lost(printed: Rows, kept: Rows) -> list[str]:
    """Printed events that the log does not hold as they were printed."""
    places = {row["seq"]: row for row in kept}
    gone = [row for row in printed if places.get(row["seq"]) != row]
    return [f"{len(gone)} printed events lost, the first: {json.dumps(gone[0])[:200]}"] if gone else []


def log_faults(rows: Rows) -> list[str]:
    """What is wrong with a log as a whole: places, and one result for each call."""
    faults = []
    if [row["seq"] for row in rows] != list(range(1, len(rows) + 1)):
        faults.append("seqs are not 1, 2, 3 ...")
    events = [row["event"] for row in rows]
    wanted = [part["id"] for part in calls(events)]
    results = [event["call_id"] for event in events if event["type"] == "call_finished"]
    if sorted(wanted) != sorted(results):
        faults.append(f"calls {wanted} have results {results}")
    started = {event["call_id"] for event in events if event["type"] == "call_started"}
    for event in events:
        if event["type"] == "call_finished" and event.get("error") == "interrupted":
            text = UNKNOWN if event["call_id"] in started else NEVER
            if not event["content"].startswith(text):
                faults.append(f"{event['call_id']} is told as {event['content'][:60]!r}, not {text!r}")
    return faults


def calls(events: Rows) -> Rows:
    """The tool calls of all messages."""
    messages = [event["message"] for event in events if event["type"] == "message_added"]
    return [part for message in messages for part in message["parts"] if part["type"] == "tool_call"]


def effect_faults(rows: Rows, effects: list[str]) -> list[str]:
    """Side effects that ran twice, that ran though told as not, or that did not run though told as done."""
    events = [row["event"] for row in rows]
    results = {event["call_id"]: event for event in events if event["type"] == "call_finished"}
    faults = [f"ran twice: {token}" for token in set(effects) if effects.count(token) > 1]
    for part in calls(events):
        words = json.dumps(part).split("echo ", 1)[1:]
        result = results.get(part["id"])
        if not words or result is None:
            continue
        token = words[0].split()[0]
        if result["ok"] and token not in effects:
            faults.append(f"told as done but not there: {token}")
        if result["content"].startswith(NEVER) and token in effects:
            faults.append(f"told as never run but there: {token}")
    return faults


def request_faults(door: Door, session: str, rows: Rows) -> list[str]:
    """Requests that do not come again as they were sent, or that no provider would take."""
    sent = [row["event"] for row in rows if row["event"]["type"] == "request_sent"]
    faults = []
    for event in sent[-3:]:
        body = request_body(str(door.home), session, event["request"])
        if body is None or len(body) != event["bytes"]:
            faults.append(f"request {event['request']} comes again as {len(body or b'')} bytes, not {event['bytes']}")
        else:
            faults += [f"request {event['request']}: {fault}" for fault in body_faults(body)]
    return faults


def body_faults(body: bytes) -> list[str]:
    """Where a request breaks the rule that each call is directly followed by its result, and by nothing else."""
    waiting: list[str] = []
    for place, message in enumerate(json.loads(body)["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return [f"message {place} answers {message['tool_call_id']}, which nobody called"]
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return [f"message {place} stands between calls and the results of {waiting}"]
        waiting = [part["id"] for part in message.get("tool_calls") or ()]
    return [f"no result of {waiting}"] if waiting else []
