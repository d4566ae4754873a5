"""`codewhale provider` as people and scripts use it."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.patience import HANG
from support.program import codewhale_program, configure, scripted
from support.wire import Reply, Wire, answer, delta, sse, stream

CALLS = [
    delta(tool_calls=[{"index": at, "id": f"c{at}", "function": {"name": "get_weather", "arguments": '{"city":"x"}'}}])
    for at in range(2)
]
USAGE = {"choices": [], "usage": {"prompt_tokens": 1300, "completion_tokens": 9, "total_tokens": 1309}}


@contextmanager
def endpoint(replies: Sequence[Reply]) -> Iterator[Wire]:
    """A model server of another thread."""
    wire, loop = Wire(replies), asyncio.new_event_loop()
    ready, done = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with wire:
            ready.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(HANG)
    try:
        yield wire
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()


def spoken(*events: Any) -> Reply:
    whole = stream(sse(*events, delta("stop"), USAGE, "[DONE]"), 80)
    return Reply([whole[at : at + 150] for at in range(0, len(whole), 150)])


def test_the_list_tells_where_each_key_comes_from_and_no_key(tmp_path: Path) -> None:
    path = configure(tmp_path, '[providers.mine]\nbase_url = "https://mine.example/v1"\napi_key = "sk-in-table"\n')
    env = {"DEEPSEEK_API_KEY": "sk-in-variable"}
    done = codewhale_program(tmp_path, "provider", "list", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    lines = {line[2:].split()[0]: line for line in done.stdout.splitlines()}
    assert lines["deepseek"].startswith("* ") and "key: environment DEEPSEEK_API_KEY" in lines["deepseek"]
    assert f"key: {path}" in lines["mine"]
    assert "OPENAI_API_KEY is not set" in lines["openai"]
    rows = codewhale_program(tmp_path, "provider", "list", "--json", env=env)
    (row,) = [row for row in json.loads(rows.stdout) if row["name"] == "mine"]
    assert row == {
        "name": "mine",
        "default": False,
        "dialect": "openai-chat",
        "base_url": "https://mine.example/v1",
        "origin": str(path),
        "key": {"source": str(path), "refused": []},
        "problem": "",
    }
    assert "sk-in" not in done.stdout + rows.stdout


def test_a_test_tells_what_it_saw_and_saves_it(tmp_path: Path) -> None:
    counted = spoken(*(delta(content=f"{number} ") for number in range(30)))
    listing = Reply([answer(200, b'{"data": [{"id": "m-1", "max_model_len": 16384}]}')])
    nothing = Reply([answer(404)])
    replies = [counted, counted, spoken(*CALLS), spoken(delta(content="No such tool.")), *[nothing] * 3, listing]
    with endpoint(replies) as wire:
        path = configure(tmp_path, f'# mine\n[providers."my box"]\nbase_url = "{wire.url}"\n')
        asked = ("provider", "test", "my box", "--model", "m-1", "--api-key", "sk-flag-key")
        done = codewhale_program(tmp_path, *asked, "--save")
    assert done.returncode == 0, done.stdout + done.stderr
    told = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()[1:8]}
    assert told.pop("streams") != "no"  # a quick server's answer may come in one packet
    assert told == {
        "tool_calls": "yes",
        "parallel_calls": "yes",
        "reasoning": "no",
        "undeclared_calls": "no",
        "cache_telemetry": "no",
        "window": "yes",
    }
    assert "4 requests, 5200 tokens in, 36 out" in done.stdout
    assert {request.headers["authorization"] for request in wire.requests} == {"Bearer sk-flag-key"}
    assert "sk-flag-key" not in done.stdout + done.stderr + path.read_text()
    assert path.read_text().startswith("# mine\n") and str(path) in done.stderr
    resolved = codewhale_program(tmp_path, "model", "resolve", "m-1", "--provider", "my box", "--json")
    found = json.loads(resolved.stdout)
    assert (found["window"], found["window_source"]) == (16384, "reported")
    assert found["facts"]["calls_undeclared_tools"] is False and found["facts"]["parallel_calls"] is True


def test_json_holds_every_finding(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"1 2 3"}', '{"text":"1 2 3"}', '{"text":"I cannot."}')
    done = codewhale_program(tmp_path, "provider", "test", "played", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["schema_version"], report["provider"], report["ok"]) == (1, "played", True)
    assert {finding["answer"] for finding in report["found"]["findings"]} <= {"yes", "no", "unknown"}
    assert report["toml"] == "[providers.played.facts]\ntools = false\n"


def test_a_provider_that_does_not_answer(tmp_path: Path) -> None:
    with endpoint([Reply([answer(401, b'{"error":{"message":"bad key sk-flag-key"}}')])]) as wire:
        configure(tmp_path, f'[providers.x]\nbase_url = "{wire.url}"\n')
        done = codewhale_program(tmp_path, "provider", "test", "x", "--api-key", "sk-flag-key")
        assert done.returncode == 1
        assert "no answer: " in done.stdout and "bad key [key]" in done.stdout
        assert len(wire.requests) == 1
    for name, said in (("nobody", "no provider 'nobody'"), ("deepseek", "DEEPSEEK_API_KEY is not set")):
        done = codewhale_program(tmp_path, "provider", "test", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
