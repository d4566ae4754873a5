"""What a round's code leaves running, and how many kernels it may begin."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from support.recursive import evaluated, opened, rounds


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            yield path.read_bytes()


async def test_a_round_waits_for_its_threads_and_a_pool_that_is_idle_stays(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_text("text")
    begin = (
        "import threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "pool, heard = ThreadPoolExecutor(4), []\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), heard.append(sub_query('Late?')))).start()\n"
        "print(list(pool.map(sub_query, ['One?', 'Two?'])))"
    )
    again = "print(heard, list(pool.map(sub_query, ['Three?'])))"
    (_, first, second), _, _ = await rounds(
        home, workspace, [opened(), evaluated(begin), evaluated(again)], lambda prompt: prompt.strip()[:4]
    )
    assert not first["had_error"] and "One" in first["stdout_preview"] and not second["had_error"]
    assert "Late" in second["stdout_preview"] and "Thre" in second["stdout_preview"]


async def test_a_thread_that_does_not_end_costs_the_kernel_and_is_told(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_text("text")
    asks = "def asks():\n    while True:\n        try:\n            sub_query('More?')\n        except BaseException:\n"
    begin = (
        f"import threading, time\n{asks}            time.sleep(0.01)\n"
        "kept = 7\nthreading.Thread(target=asks, daemon=True).start()\nprint('mine')"
    )
    calls = [opened(), evaluated(begin), evaluated("print('kept' in globals())"), evaluated("print(1)")]
    (_, first, second, third), _, _ = await rounds(home, workspace, calls, lambda prompt: "yes")
    assert "mine" in first["stdout_preview"] and "join threads in the round that begins them" in str(first)
    assert second["stdout_preview"].strip() == "False" and "threads of the round went on" in str(second)
    assert third["stdout_preview"].strip() == "1" and not third["had_error"]


async def test_no_more_than_eight_kernels_run_below_a_session(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_text("text")
    seen: list[int] = []

    def answer(prompt: str) -> str:
        lines = [line.split(b"\0") for line in command_lines()]
        seen.append(
            sum(line[1:5] == [b"-s", b"-P", b"-S", b"-B"] and os.fsencode(home) in b"".join(line) for line in lines)
        )
        return "```python\nfinalize(len(SOURCE))\n```"

    batch = "print(rlm_query_batched([f'{n}: how long?' for n in range(16)]))"
    (_, result), _, _ = await rounds(home, workspace, [opened(), evaluated(batch)], answer)
    assert result["stdout_preview"].count("'4'") == 16 and 1 < max(seen) <= 8, (seen, result)


async def test_a_daemon_that_waits_for_an_answer_ends_with_its_round(home: Path, workspace: Path) -> None:
    (workspace / "source.txt").write_text("text")
    begin = (
        "import threading\nkept = 7\n"
        "for n in range(5):\n    threading.Thread(target=sub_query, args=(f'{n}?',), daemon=True).start()"
    )
    (_, first, second), _, _ = await rounds(
        home, workspace, [opened(), evaluated(begin), evaluated("print(kept, sub_query('And now?'))")], lambda _: "yes"
    )
    assert second["stdout_preview"].split() == ["7", "yes"] and not first["had_error"]
