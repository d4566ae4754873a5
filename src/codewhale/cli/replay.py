"""What `codewhale sessions replay` and `sessions import` print."""

import asyncio
import os

from codewhale.cli.parser import ChoiceError
from codewhale.cli.stdio import put, say


def replay_session(home: str, session: str, run_reads: bool, as_json: bool) -> int:
    """Print every call of a session as it is understood today; 1 when one would not do again what it did, or
    an attached source that it read has changed."""
    return asyncio.run(_replay(home, session, run_reads, as_json))


async def _replay(home: str, session: str, run_reads: bool, as_json: bool) -> int:
    from codewhale.app.sourcing import replayed_sources
    from codewhale.cli.offline.replay import replay
    from codewhale.cli.offline.stored_sessions import envelopes
    from codewhale.display.lines import call_text, object_line, source_text

    calls, refused, repaired, renamed, drifted, changed = 0, 0, 0, 0, 0, 0
    async for told in replay(home, session, os.environ, run_reads):
        calls += 1
        refused += told.outcome == "refuse"
        repaired += bool(told.repairs)
        renamed += told.canonical != told.name and told.outcome == "run"
        drifted += bool(told.drift)
        put(object_line(told) + "\n" if as_json else call_text(calls, told))
    for source in await asyncio.to_thread(replayed_sources, [one.event for one in envelopes(home, session)]):
        changed += bool(source.changed)
        put(object_line(source) + "\n" if as_json else source_text(source))
    if not as_json:
        ran = "only reading calls were run, in a copy" if run_reads else "nothing was run"
        put(
            f"{calls} calls: {calls - refused} understood ({renamed} by another name, {repaired} repaired), {refused} "
            f"refused, {drifted} with another outcome; {ran}\n"
        )
    return 1 if drifted or changed else 0


def import_file(home: str, path: str, workspace: str, as_json: bool) -> int:
    """Import a session file and print the new session's id."""
    from codewhale.cli.offline.importing import import_session
    from codewhale.display.lines import import_lines, object_line

    try:
        told = asyncio.run(import_session(path, home, workspace, os.environ))
    except FileNotFoundError as error:
        raise ChoiceError(f"{path}: {error.strerror}") from error
    put(object_line(told) + "\n" if as_json else told.session + "\n")
    if not as_json:
        for line in import_lines(told):
            say(line)
    return 0
