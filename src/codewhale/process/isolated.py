"""Work on what strangers wrote (documents, data, patterns) in an interpreter of its own, which can be ended: bounded in
memory, processor time, wall time and output, unable to write files, and in the sandbox where this machine has one.
"""

import math

from msgspec import Struct

from codewhale.process.command import Completed, Launch
from codewhale.process.confinement import held_where_possible
from codewhale.process.itself import own_python
from codewhale.process.launch import run

MEMORY = 512 << 20
SECONDS = 10.0
AT_ONCE = 2  # of one kind, whoever asks: what each may take adds up
NO_MEMORY = 99  # the exit code of work that ran into its bound of memory
# argv: bytes of memory, seconds of processor time, the module to run ("" for a program), its arguments.
_BEGIN = f"""
import os, resource, runpy, sys
memory, seconds, module = sys.argv[1:4]
for name, most in (("AS", int(memory)), ("CPU", int(seconds)), ("FSIZE", 0), ("CORE", 0)):
    try:
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
    except (OSError, ValueError):
        pass
if not module:
    os.execv(sys.argv[4], sys.argv[4:])
sys.argv[:4] = [module]
try:
    runpy.run_module(module, run_name="__main__")
except MemoryError:
    sys.exit({NO_MEMORY})
"""


class IsolatedWork(Struct, frozen=True):
    """What to do: `module` is one of ours that reads `data` from standard input and writes to standard output; with ""
    it is the program that `args` begins with, by its path. `folder` is one that it looks into, "" for none."""

    module: str
    data: bytes
    args: tuple[str, ...] = ()
    folder: str = ""
    seconds: float = SECONDS
    output_limit: int = 8 << 20

    async def do(self) -> Completed:
        """Do it to the end; a cancel ends the process. Raises OSError where none can be started."""
        bounds = (str(MEMORY), str(math.ceil(self.seconds) + 1))
        return await run(
            Launch(
                argv=own_python(_BEGIN, *bounds, self.module, *self.args),
                cwd=self.folder or "/",
                profile=await held_where_possible("read-only"),
                stdin=self.data,
                seconds=self.seconds,
                output_limit=self.output_limit,
                supervised=False,
                own=True,
            )
        )
