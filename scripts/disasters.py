"""What else befalls a home besides a killed process: damaged logs, a full disk, a power cut, a very long log."""

import asyncio
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from aftermath import Door, Life, Rows, body_faults, call, calls, judge, last_turns, long_turns, lost, parse

from codewhale.app.compose import AppOptions, open_app
from codewhale.cli.offline.stored_sessions import envelopes, request_body
from codewhale.display.lines import envelope_line
from codewhale.lib.clock import SystemClock
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Event, MessageAdded, SessionOpened, TurnFinished, TurnStarted
from codewhale.protocol.messages import Message, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.session.store import SessionStore
from codewhale.testing import collect
from support.spoiling import damaged

ROOT = Path(__file__).resolve().parent.parent
Told = tuple[dict[str, Any], list[str]]
Spread = Callable[[Callable[..., list[str]], Iterator[tuple[Any, ...]]], Iterable[list[str]]]

# ------------------------------------------------------------------ damaged logs


def damaged_logs(count: int, first: int) -> Told:
    """Open `count` damaged copies of one log, take each up again and look for what was lost beyond the damage."""
    with tempfile.TemporaryDirectory(prefix="codewhale-damage-") as folder:
        door = Door(Path(folder))
        door.configure(long_turns(first, 3))
        door.live("Do all steps.")
        (session,) = door.sessions()
        door.configure([{"text": "Resumed and done."}])
        kept = door.home / "sessions" / session
        log = kept / "log.jsonl"
        data, rows = log.read_bytes(), told_rows(door, session)
        opened, refused, faults = 0, 0, list[str]()
        for seed in range(first, first + count):
            for path in kept.iterdir():
                path.unlink()
            chance = random.Random(seed)
            spoilt, ranges, kind = damaged(data, chance)
            log.write_bytes(spoilt)
            for name in ("lock", "listing.json"):
                if chance.random() < 0.2:
                    (kept / name).write_bytes(chance.randbytes(chance.randrange(200)))
            found = damage_faults(door, session, rows, touched(data, ranges))
            refused += found is None
            opened += found is not None
            faults += [f"damage seed {seed} ({kind} at {ranges[0]}): {fault}" for fault in found or ()]
        return {"damaged_opened": opened, "damaged_refused": refused, "damaged_faulty": len(faults)}, faults


def told_rows(door: Door, session: str) -> Rows:
    """A session's events as the front door shows them."""
    return [json.loads(envelope_line(envelope)) for envelope in envelopes(str(door.home), session)]


def touched(data: bytes, ranges: list[tuple[int, int]]) -> set[int]:
    """The seqs of the records that a damage touched."""
    seqs, start = set(), 0
    for seq, line in enumerate(data.split(b"\n")[:-1], start=1):
        end = start + len(line) + 1
        if any(low < end and high >= start for low, high in ranges):
            seqs.add(seq)
        start = end
    return seqs


def damage_faults(door: Door, session: str, rows: Rows, spoilt: set[int]) -> list[str] | None:
    """What is wrong after a damage; None when nothing at all could be read and that was said."""
    try:
        status = asyncio.run(take_up(door, session))
    except SessionError as error:
        unreadable = len(spoilt) == len(rows) and "no readable record" in str(error)
        return None if unreadable else [f"refused: {error}"]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    faults = [] if status == "done" else [f"the turn ended as {status}"]
    kept = told_rows(door, session)
    faults += lost([row for row in rows if row["seq"] not in spoilt], kept)
    events = [row["event"] for row in kept]
    results = [event["call_id"] for event in events if event["type"] == "call_finished"]
    wanted = [part["id"] for part in calls(events)]
    if len(set(results)) < len(results) or set(wanted) - set(results):
        faults.append(f"calls {wanted} have results {results}")
    last = [event for event in events if event["type"] == "request_sent"][-1]
    body = request_body(str(door.home), session, last["request"])
    if body is None or len(body) != last["bytes"]:
        return [*faults, f"request {last['request']} comes again as {len(body or b'')} bytes, not {last['bytes']}"]
    return faults + body_faults(body)


async def take_up(door: Door, session: str) -> str:
    """Resume the session and say one thing; how the turn ended."""
    options = AppOptions(home=str(door.home), workspace=str(door.work))
    async with open_app(options) as app:
        mode, authority = Mode.YOLO, Authority.AUTO
        await app.client.submit(OpenSession(str(door.work), mode=mode, authority=authority, resume=session))
        waiting = asyncio.ensure_future(collect(app.client.events(session, from_seq=-1)))
        await asyncio.sleep(0)
        await app.client.submit(SendMessage(session, "Go on."))
        end = (await waiting)[-1].event
        return end.status if isinstance(end, TurnFinished) else type(end).__name__


# ------------------------------------------------------------------ power cuts


def power_cuts() -> Told:
    """The states that a power cut may leave, each opened: the number and whether all were well."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "tests/session/test_log_powercut.py",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    number = re.search(r"(\d+) states after a power cut", done.stdout)
    faults = [f"power cut: {done.stdout[-1000:]}"] if done.returncode or number is None else []
    return {"powercut_states": int(number[1]) if number else 0}, faults


# ------------------------------------------------------------------ full disks


def busy_turns(seed: int) -> list[dict[str, Any]]:
    """A session of more than 300 writes of its own: many small calls, some with effects."""
    script = long_turns(seed, 2)[:-1]
    for step in range(40):
        calls = [call("read_file", path=f"page_{step % 2}.txt", start_line=1 + step, max_lines=1)]
        calls += [call("grep_files", pattern=f"page {step}.{number}") for number in range(3)]
        script.append({"calls": calls})
    return [*script, {"text": "All steps are done."}]


def full_disks(count: int, spread: Spread) -> Told:
    """A disk that is full at write number n: `count` of the first 300, every second one for good."""
    numbers = sorted({1 + round(step * 299 / max(1, count - 1)) for step in range(count)})
    cases = ((number, "+" if number % 2 else "") for number in numbers)
    faults = [fault for found in spread(full_case, cases) for fault in found]
    return {"disk_full_cases": len(numbers), "disk_full_faulty": len(faults)}, faults


def full_case(number: int, onward: str) -> list[str]:
    """The disk is full at one write, or from there on; then there is room again."""
    folder = Path(tempfile.mkdtemp(prefix="codewhale-full-"))
    try:
        door = Door(folder)
        door.configure(busy_turns(number))
        life = door.live("Do all steps.", failpoints=f"disk.write=enospc@{number}{onward}")
        faults = end_faults(life, lasting=bool(onward))
        for session in door.sessions():
            faults += judge(door, session, [life])[0]
        return [f"disk full at write {number}{onward}: {fault}" for fault in faults]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end_faults(life: Life, *, lasting: bool) -> list[str]:
    """What is wrong with how a process ended on a full disk. Where only one write failed the end is recorded."""
    faults = []
    if life.hung or "Traceback" in life.said:
        faults.append(f"hung or fell over: {life.said[-300:]}")
    ends = [row["event"]["status"] for row in life.rows if row["event"]["type"] == "turn_finished"]
    full = re.compile(r"disk is full|No space left")
    if life.code == 0 and ends == ["done"] and (not lasting or full.search(json.dumps(life.rows))):
        return faults  # what could not be written was not needed; where it lasts, that was said
    if life.code not in (1, 75):
        faults.append(f"exit code {life.code}")
    if not full.search(life.said + json.dumps(life.rows[-1:])):
        faults.append(f"says {life.said[-200:]!r}")
    if not lasting and life.rows and ends != ["infra"]:
        faults.append(f"the turn's end is not told: {ends}, {life.said[-200:]!r}")
    return faults


# In kB: with room for the reserve and little else, and too small for it.
TINY_SIZES = (1190, 160, 1130, 240, 1250, 1070)
TINY = """
mount -t tmpfs -o size={size}k,mode=700 tmpfs {base} && mkdir -m 700 {base}/home {base}/work && cd {base} || exit 99
cp {kept}/script.jsonl {kept}/config.toml home/
codewhale exec -w work --yolo --output-format stream-json "Do all steps." >{kept}/printed 2>{kept}/said </dev/null
echo $? >{kept}/code
mount -o remount,size=64m {base}
cp {kept}/last.jsonl home/script.jsonl
codewhale exec -w work --yolo --output-format stream-json --resume latest "Go on." >{kept}/again 2>&1 </dev/null
echo $? >{kept}/again_code
codewhale sessions show latest --events >{kept}/shown 2>&1 || true
"""


def tiny_disks(count: int) -> Told:
    """The same on real file systems of a few sizes, where user namespaces allow mounting one."""
    probe = ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        return {"tiny_disk_cases": 0}, []
    faults = [fault for size in TINY_SIZES[:count] for fault in tiny_case(size)]
    return {"tiny_disk_cases": count, "tiny_disk_faulty": len(faults)}, faults


def tiny_case(size: int) -> list[str]:
    """One file system of `size` kB with home and workspace on it; then it grows."""
    folder = Path(tempfile.mkdtemp(prefix="codewhale-tiny-"))
    try:
        base = folder / "disk"
        base.mkdir()
        door = Door(folder)
        kept = door.home
        door.configure(busy_turns(size))
        text = (kept / "config.toml").read_text().replace(str(kept), str(base / "home"))
        (kept / "config.toml").write_text(text)
        (kept / "last.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in last_turns("again")))
        environment = {**door.environment(), "CODEWHALE_HOME": str(base / "home")}
        script = TINY.format(size=size, base=base, kept=kept)
        subprocess.run(["unshare", "-Urm", "sh", "-c", script], env=environment, timeout=600, check=True)
        return [f"file system of {size} kB: {fault}" for fault in tiny_faults(kept)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tiny_faults(kept: Path) -> list[str]:
    """What is wrong with what a run on a small file system left behind."""
    printed = (kept / "printed").read_bytes()
    life = Life(printed, (kept / "said").read_text(), int((kept / "code").read_text()), 0.0, False)
    faults = end_faults(life, lasting=True)
    if not life.rows:
        return faults
    if int((kept / "again_code").read_text()):
        faults.append(f"resume: {(kept / 'again').read_text()[-300:]}")
    return faults + lost(life.rows, parse((kept / "shown").read_bytes()))


# ------------------------------------------------------------------ a very long log


def long_resume(messages: int) -> Told:
    """How long the front door takes to take up a session of so many messages and end a turn, median of three."""
    with tempfile.TemporaryDirectory(prefix="codewhale-long-") as folder:
        door = Door(Path(folder))
        log = SessionStore(str(door.home), SystemClock()).create(
            SessionOpened(1, str(door.work), Mode.YOLO, "scripted", "script")
        )
        for turn in range(1, messages // 2 + 1):
            asked = MessageAdded(Message("user", (Text(f"Question {turn}: " + "what of this line? " * 10),)))
            said = MessageAdded(Message("assistant", (Text(f"Answer {turn}: " + "so it is. " * 20, "model"),)), "stop")
            told: list[Event] = [TurnStarted(turn), asked, said, TurnFinished(turn, "done")]
            log.append(told)
        log.close()
        door.configure([{"text": "Resumed and done."}])
        lives = [door.live("Go on.", "--resume", log.session) for _ in range(3)]
        faults = [f"long log: {life.code}, {life.said}" for life in lives if life.code]
        took = statistics.median(life.seconds for life in lives)
        return {"long_messages": messages, "long_resume_s": round(took, 3)}, faults


if __name__ == "__main__":
    sys.exit("run crash.py")
