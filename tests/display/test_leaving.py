"""The end of the process."""

import subprocess
import sys

from support.patience import HANG, Moment


def test_a_thread_that_never_ends_does_not_keep_a_process() -> None:
    code = (
        "import asyncio, threading\n"
        "from codewhale.display.leaving import IS_PROGRAM, exit_within\n"
        "async def main():\n"
        "    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)\n"
        "    IS_PROGRAM.set(True)\n"
        "    exit_within(0.5, 7)\n"
        "asyncio.run(main())\n"
    )
    began = Moment()
    assert subprocess.run([sys.executable, "-c", code], timeout=HANG, check=False).returncode == 7
    assert not began.hung


def test_a_process_that_is_not_the_program_goes_on() -> None:
    code = "import time\nfrom codewhale.display.leaving import exit_within\nexit_within(0.01, 7)\ntime.sleep(0.5)\n"
    assert subprocess.run([sys.executable, "-c", code], timeout=HANG, check=False).returncode == 0
