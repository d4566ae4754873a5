"""What the two owners report of a child, word by word."""

import asyncio
import os
import subprocess
from collections.abc import Sequence

from codewhale.process.supervisor import Direct, Supervised
from support.running import eventually


def spawn(argv: Sequence[str], inherited: Sequence[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdin=-3, stdout=-3, stderr=-3, pass_fds=inherited, start_new_session=True)


class Heard(list[tuple[str, ...]]):
    def report(self, word: str, *rest: str) -> None:
        self.append((word, *rest))

    def words(self) -> list[str]:
        return [row[0] for row in self]


async def test_supervised_reports_from_start_to_gone() -> None:
    heard = Heard()
    Supervised(heard.report).start(spawn, ("sh", "-c", "exit 5"), (0, 0, 0, 0))
    await eventually(lambda: "gone" in heard.words())
    assert heard.words() == ["started", "exit", "gone"] and heard[1] == ("exit", "5", "0")


async def test_supervised_counts_what_is_left() -> None:
    heard = Heard()
    owner = Supervised(heard.report)
    owner.start(spawn, ("sh", "-c", "sleep 600 & sleep 600 &"), (0, 0, 0, 0))
    await eventually(lambda: "exit" in heard.words())
    assert heard[1] == ("exit", "0", "2")
    owner.kill()
    owner.kill()
    await eventually(lambda: "gone" in heard.words())
    owner.kill()


async def test_supervised_reports_a_program_that_cannot_start() -> None:
    heard = Heard()
    Supervised(heard.report).start(spawn, ("/no/such/program",), (0, 0, 0, 0))
    await eventually(lambda: "gone" in heard.words())
    assert heard[0] == ("failed", "2") and "started" not in heard.words()


async def test_direct_ends_a_program_that_ignores_term() -> None:
    heard = Heard()
    owner = Direct(heard.report)
    owner.start(spawn, ("sh", "-c", "trap '' TERM; kill -CONT $$; while :; do sleep 0.05; done"))
    await eventually(lambda: "started" in heard.words())
    await asyncio.sleep(0.05)
    owner.kill()
    await eventually(lambda: "gone" in heard.words())
    assert heard[-2][0] == "exit" and int(heard[-2][1]) < 0


async def test_direct_without_pidfds() -> None:
    heard = Heard()
    owner = Direct(heard.report)
    made = spawn(("sh", "-c", "sleep 0.05; exit 4"), ())
    owner.watch(made, pidfd=False)
    await eventually(lambda: "gone" in heard.words())
    assert ("exit", "4", "0") in heard
    assert not os.path.exists(f"/proc/{made.pid}")
