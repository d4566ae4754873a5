"""Plain text searched by ripgrep, where there is one: what the index cannot say, or not yet."""

from collections.abc import Sequence

from codewhale.process.confinement import held_where_possible
from codewhale.process.launch import Launch, run
from codewhale.process.programs import find_program

LARGEST = 2 << 20  # bytes of a file that is searched
_OUTPUT = 4 << 20
_PER_FILE = "20"
_OPTIONS = (
    "--no-config", "--no-messages", "--fixed-strings", "--only-matching", "--line-number", "--null", "--color", "never",
    "--no-heading", "--max-count", _PER_FILE, "--max-filesize", str(LARGEST),
)  # fmt: skip


async def matches(root: str, texts: Sequence[str], seconds: float, *options: str) -> list[tuple[str, int, str]] | None:
    """(path, line, matched text) of each line that holds one of the texts, at most 20 in a file, as far as ripgrep
    comes in that time; None where there is no ripgrep."""
    rg = find_program("rg", root)
    if rg is None:
        return None
    patterns = tuple(part for text in texts for part in ("-e", text))
    command = (rg, *_OPTIONS, *options, *patterns, "./")
    profile = await held_where_possible("read-only")
    done = await run(Launch(command, root, profile, seconds=seconds, output_limit=_OUTPUT, supervised=False, own=True))
    rows = []
    for row in done.stdout.split(b"\n"):
        path, separator, rest = row.partition(b"\0")
        line, colon, text = rest.partition(b":")
        if separator and colon and line.isdigit():
            name = path.decode("utf-8", "surrogateescape").removeprefix("./")
            rows.append((name, int(line), text.decode("utf-8", "replace")))
    return rows
