"""The host's side of a kernel: rounds, asks and answers, and each way in which a kernel ends or must be ended."""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from codewhale.process import launcher
from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from codewhale.protocol.errors import ToolError
from codewhale.rlm.model import Answered, KernelAsk
from codewhale.rlm.process import MOST_ASKS, Answer, KernelLost, KernelProcess
from support.house import ROOT
from support.patience import HANG
from support.running import eventually

# Speaks the frames, and runs code that may use them as it likes: `send` sends one, `take` waits for one.
PROGRAM = """
import json, os, signal, sys, time
coming, going = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDWR), 0), os.dup2(2, 1)
def raw(data):
    while data:
        data = data[os.write(going, data):]
def send(frame):
    data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    raw(len(data).to_bytes(4, "big") + data)
def read(count):
    data = b""
    while len(data) < count:
        data += os.read(coming, min(count - len(data), 1 << 20)) or sys.exit(0)
    return data
def take():
    return json.loads(read(int.from_bytes(read(4), "big")))
names = dict(globals())
send({"ready": {"bytes": os.path.getsize(sys.argv[1]), "text": True}})
while True:
    order = take()
    names |= {"order": order, "final": None}
    error = None
    try:
        exec(order["code"], names)
    except BaseException as problem:
        error = {"kind": type(problem).__name__, "message": str(problem), "traceback": ""}
    send({"done": order["run"], "error": error, "finals": [{"value": names["final"]}]})
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
async def kernel(program: str, tmp_path: Path) -> AsyncIterator[KernelProcess]:
    source = tmp_path / "source.txt"
    source.write_text("0123456789")
    started = await KernelProcess.start(str(source), 10, program=program, confined=bool(sandbox().mechanism))
    yield started
    await started.close()


async def unasked(ask: KernelAsk, answer: Answer) -> None:
    raise AssertionError(f"nothing was to be asked: {ask}")


async def final(kernel: KernelProcess, code: str, on_ask: object = unasked, seconds: float = HANG) -> object:
    """What a round leaves in `final`."""
    result = await kernel.run(code, seconds, on_ask)  # type: ignore[arg-type]
    assert result.error is None, result.error
    return result.finals[0].value


async def lost(kernel: KernelProcess, code: str, seconds: float = HANG, on_ask: object = unasked) -> KernelLost:
    """How a round that ends the kernel ends."""
    with pytest.raises(KernelLost) as raised:
        await kernel.run(code, seconds, on_ask)  # type: ignore[arg-type]
    assert not kernel.alive and raised.value.error.message == raised.value.message
    with pytest.raises(KernelLost):
        await kernel.run("1", 5, unasked)
    return raised.value


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each mechanism, where it is to be had."""
    monkeypatch.setenv(CHOICE, request.param)
    sandbox.cache_clear()
    if sandbox().mechanism != request.param:
        pytest.skip(f"{request.param} holds nothing on this machine")
    yield request.param
    sandbox.cache_clear()


READING = """
import ctypes, zlib, decimal
def tried(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
final = [tried(sys.argv[1]), *map(tried, {others!r})]
"""


async def read_held(source: Path, program: str, *others: Path) -> list[str]:
    """What a held kernel reads of its source and of other places."""
    kernel = await KernelProcess.start(str(source), source.stat().st_size, program=program)
    try:
        assert kernel.confined == sandbox().mechanism
        read = await final(kernel, READING.format(others=[str(path) for path in others]))
        assert isinstance(read, list)
        return read
    finally:
        await kernel.close()


@pytest.mark.parametrize("name", ["plain", 'it\'s "quoted" $HOME `x` \\ ; x', "two\nlines", "ünï", ".ssh"])
@pytest.mark.parametrize("place", ["tmp", "home", "workspace"])
async def test_the_source_is_read_wherever_it_is_and_nothing_beside_it(
    place: str, name: str, mechanism: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = ROOT / ".scratch" / f"kernel-{os.getpid()}"  # below no folder for temporary files
    base = Path(tempfile.mkdtemp()) if place == "tmp" else outside / place
    base.mkdir(parents=True, exist_ok=True)
    try:
        monkeypatch.setenv("HOME", str(outside / "home"))
        monkeypatch.chdir(outside if place == "workspace" else "/")
        (base / name).write_text("text")
        (base / "other").write_text("secret")
        (base / "a link").symlink_to(name)
        for source in (base / name, base / "a link"):
            held = await read_held(source, program, base / "other", Path("/etc/passwd"), Path("/proc/self/environ"))
            assert held[0] == "text" and {*held[1:]} <= {"FileNotFoundError", "PermissionError"}
    finally:
        monkeypatch.undo()
        shutil.rmtree(base)


async def test_it_runs_by_the_interpreter_of_an_environment_and_below_the_home(
    mechanism: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "home" / "env"
    command = [sys.executable, "-m", "venv", "--copies", "--without-pip", environment]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=HANG)
    secret = environment / "lib" / "token"
    secret.write_text("secret")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for executable in (environment / "bin" / "python", Path(sys.executable)):
        monkeypatch.setattr(sys, "executable", str(executable))
        held = await read_held(Path(program), program, secret)
        assert held[0] == PROGRAM and held[1] in ("FileNotFoundError", "PermissionError")
    monkeypatch.setenv("HOME", os.path.dirname(sys.base_prefix))
    assert (await read_held(Path(program), program))[0] == PROGRAM


async def test_without_a_sandbox_none_is_started_unless_it_was_agreed(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "none of them")
    monkeypatch.setattr("codewhale.process.confinement.PLACES", ())
    sandbox.cache_clear()
    try:
        if sandbox().mechanism:
            pytest.skip("another mechanism holds here")
        with pytest.raises(ToolError, match="no working sandbox"):
            await KernelProcess.start(program, 9, program=program)
        kernel = await KernelProcess.start(program, 9, program=program, confined=False)
        assert kernel.confined == "" and await final(kernel, "final = 7") == 7
        await kernel.close()
    finally:
        sandbox.cache_clear()


async def test_rounds_follow_each_other_and_what_code_raises_is_part_of_the_result(kernel: KernelProcess) -> None:
    assert kernel.ready.bytes == 10 and kernel.ready.text and kernel.alive
    assert kernel.confined == sandbox().mechanism
    await kernel.run("kept = 7", 5, unasked)
    assert await final(kernel, "final = [kept, order['run'], order['budget']]") == [7, 2, {}]
    result = await kernel.run("1 / 0", 5, unasked)
    assert result.error is not None and result.error.kind == "ZeroDivisionError" and kernel.alive


async def test_slots_are_answered_as_answers_come_and_asks_at_the_same_time(kernel: KernelProcess) -> None:
    both = asyncio.Barrier(2)

    async def on_ask(ask: KernelAsk, answer: Answer) -> None:
        await both.wait()
        for slot in reversed(range(len(ask.spans))):
            await answer(slot, Answered(f"{ask.ask}:{ask.prompt(slot)}:{ask.spans[slot]}", "quota" if slot else ""))

    code = """
for number in (1, 2):
    send({"ask": number, "kind": "query", "template": None, "prompts": ["p", "q"], "spans": [[0, 4], "t"]})
got = [take() for _ in range(4)]
final = sorted([one["answer"], one["slot"], one["text"], one["error"]] for one in got)
"""
    assert await final(kernel, code, on_ask) == [
        [1, 0, "1:p:(0, 4)", ""], [1, 1, "1:q:t", "quota"], [2, 0, "2:p:(0, 4)", ""], [2, 1, "2:q:t", "quota"],
    ]  # fmt: skip


ASK = '{"ask": 1, "kind": "query", "template": "p", "prompts": None, "spans": [None], "options": {}}'
FORGED = {
    "no frame": "raw(b'printed over the channel')",
    "no JSON": "send(b'{\"done\": ')",
    "another kind": "send({'say': 1})",
    "a second beginning": "send({'ready': {'bytes': 1, 'text': True}})",
    "the end of another round": "send({'done': order['run'] + 1})",
    "a wrong type": "send({'done': order['run'], 'stdout': 7})",
    "nothing but depth": "send(b'{\"done\": 1, \"x\": ' + b'[' * 100000)",
    "bytes that are no text": 'send(b\'{"ask": 1, "kind": "\\xff"}\')',
    "a frame too large": "raw((33 << 20).to_bytes(4, 'big'))",
    "an ask twice": f"send({ASK}); send({ASK})",
    "a span outside": f"send({ASK} | {{'spans': [[0, 11]]}})",
    "a span backwards": f"send({ASK} | {{'spans': [[4, 2]]}})",
    "more prompts than slots": f"send({ASK} | {{'prompts': ['a', 'b']}})",
    "a flood of asks": f"[send({ASK} | {{'ask': number}}) for number in range({MOST_ASKS + 1})]",
}


@pytest.mark.parametrize("code", FORGED.values(), ids=FORGED)
async def test_what_the_kernel_does_not_send_ends_it(kernel: KernelProcess, code: str) -> None:
    async def never(ask: KernelAsk, answer: Answer) -> None:
        await asyncio.Event().wait()

    assert (await lost(kernel, f"{code}; time.sleep(60)", on_ask=never)).error.kind == "forged"


async def test_a_round_that_says_it_ended_and_goes_on_is_ended_when_it_speaks(kernel: KernelProcess) -> None:
    await kernel.run("send({'done': order['run']}); time.sleep(0.3); send({'done': order['run']})", 5, unasked)
    with pytest.raises(KernelLost, match="does not send"):
        await kernel.run("time.sleep(60)", 20, unasked)


async def test_a_kernel_that_ends_by_itself_says_how(program: str, tmp_path: Path) -> None:
    ends = {"os._exit(7)": "exited 7", "os.kill(os.getpid(), 9)": "killed", "os.kill(os.getpid(), 11)": "exited"}
    for code, kind in ends.items():
        kernel = await KernelProcess.start(program, 100, program=program, confined=bool(sandbox().mechanism))
        error = (await lost(kernel, code)).error
        assert error.kind.startswith(kind) and "kernel" in error.message
        await kernel.close()


async def test_a_program_that_does_not_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise SystemExit('no source here')")
    with pytest.raises(KernelLost, match=r"exit code 1 \(no source here\)"):
        await KernelProcess.start(str(tmp_path / "program.py"), 1, program=str(tmp_path / "program.py"), confined=False)


async def test_code_that_ignores_its_time_is_ended_a_moment_after(kernel: KernelProcess) -> None:
    error = (await lost(kernel, "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", 0.2)).error
    assert error.kind == "killed" and "0.2 s" in error.message


async def cancelled(kernel: KernelProcess, code: str, on_ask: object, before: str = "") -> None:
    """Cancel a round once it asks, and wait until it is over."""
    asked = asyncio.Event()

    async def heard(ask: KernelAsk, answer: Answer) -> None:
        asked.set()
        await on_ask(ask, answer)  # type: ignore[operator]

    running = asyncio.ensure_future(kernel.run(f"{before}\nsend({ASK})\n{code}", 60, heard))
    async with asyncio.timeout(HANG):
        await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancel_interrupts_the_code_and_what_it_asked_and_variables_stay(kernel: KernelProcess) -> None:
    ended = asyncio.Event()

    async def never(ask: KernelAsk, answer: Answer) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    await kernel.run("kept = 7", 5, unasked)
    await cancelled(kernel, "while True: pass", never)
    assert kernel.alive and ended.is_set() and await final(kernel, "final = kept") == 7


async def test_a_cancel_that_the_code_ignores_ends_the_kernel(kernel: KernelProcess) -> None:
    async def never(ask: KernelAsk, answer: Answer) -> None:
        await asyncio.Event().wait()

    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    await cancelled(kernel, "while True: pass", never, before)
    assert not kernel.alive
    pid, started = kernel._process
    await eventually(lambda: (launcher.stat(pid) or (0, 0, 0, False))[0::3] != (started, True))


async def test_an_answer_that_cannot_be_had_ends_the_round_with_its_own_error(kernel: KernelProcess) -> None:
    async def fails(ask: KernelAsk, answer: Answer) -> None:
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError, match="no model"):
        await kernel.run(f"send({ASK})\nwhile True: pass", 60, fails)
    assert kernel.alive and await final(kernel, "final = 1") == 1


async def test_a_kernel_that_reads_no_answers_holds_up_nobody(kernel: KernelProcess) -> None:
    async def much(ask: KernelAsk, answer: Answer) -> None:
        for _ in range(100):
            await answer(0, Answered("x" * 1_000_000))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await cancelled(kernel, "while True: time.sleep(1)", much)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


async def test_a_gigabyte_of_noise_is_not_kept(kernel: KernelProcess) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await final(kernel, "for _ in range(1 << 8): os.write(2, b'x' * (1 << 20))\nfinal = 1") == 1
    assert (await lost(kernel, "while True: raw(b'x' * (1 << 20))")).error.kind == "forged"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


async def test_a_large_frame_passes_in_both_directions(kernel: KernelProcess) -> None:
    text = await final(kernel, f"final = {'x' * 5_000_000!r} * 6")
    assert isinstance(text, str) and len(text) == 30_000_000


async def test_memory_is_bounded_and_more_is_an_error_of_the_code(program: str, tmp_path: Path) -> None:
    confined = bool(sandbox().mechanism)
    kernel = await KernelProcess.start(program, 100, program=program, memory=100 << 20, confined=confined)
    result = await kernel.run("[bytearray(1 << 20) for _ in range(1 << 20)]", 60, unasked)
    assert result.error is not None and result.error.kind == "MemoryError"
    assert await final(kernel, "final = 1") == 1
    code = (
        "import mmap\nkept = mmap.mmap(-1, 250 << 20)\nkept.write(b'x' * (50 << 20))\n"
        + "kept.write(b'x' * (20 << 20))\n" * 9
    )
    assert (await lost(kernel, f"{code}\ntime.sleep(60)", 60)).error.kind == "memory"
    await kernel.close()


async def test_closing_ends_all_of_it_and_a_second_time_does_nothing(kernel: KernelProcess) -> None:
    pid, started = kernel._process
    running = asyncio.ensure_future(kernel.run("time.sleep(60)", 60, unasked))
    await asyncio.sleep(0)
    await kernel.close()
    with pytest.raises(KernelLost, match="closed"):
        await running
    assert (launcher.stat(pid) or (0, 0, 0, False))[0::3] != (started, True)
    await kernel.close()


async def test_the_kernel_ends_with_the_harness(program: str) -> None:
    """Its input ends, and its launcher ends the rest."""
    held = bool(sandbox().mechanism)
    code = (
        "import asyncio, os, sys\nfrom codewhale.rlm.process import KernelProcess\n"
        "async def main():\n"
        f"    kernel = await KernelProcess.start({program!r}, 9, program={program!r}, confined={held})\n"
        "    print(kernel._process[0], flush=True)\n    await kernel.run('while True: pass', 60, None)\n"
        "asyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await eventually(lambda: not os.path.exists(f"/proc/{pid}"))
