"""What `codewhale sessions replay` and `sessions import` print."""

import asyncio
import os
from typing import TYPE_CHECKING

from codewhale.cli.parser import ChoiceError
from codewhale.cli.stdio import put, say
from codewhale.lib.text import one_line

if TYPE_CHECKING:
    from codewhale.app.importing import Imported
    from codewhale.app.replay import Replayed


def replay_session(home: str, session: str, run_reads: bool, as_json: bool) -> int:
    """Print every call of a session as it is understood today; 1 when one would not do again what it did."""
    return asyncio.run(_replay(home, session, run_reads, as_json))


async def _replay(home: str, session: str, run_reads: bool, as_json: bool) -> int:
    from codewhale.app.replay import replay
    from codewhale.frontends.lines import object_line

    calls, refused, mended, renamed, drifted = 0, 0, 0, 0, 0
    async for told in replay(home, session, os.environ, run_reads):
        calls += 1
        refused += told.outcome == "refuse"
        mended += bool(told.repairs)
        renamed += told.canonical != told.name and told.outcome == "run"
        drifted += bool(told.drift)
        put(object_line(told) + "\n" if as_json else _lines(calls, told))
    if not as_json:
        ran = "only what reads was run, in a copy" if run_reads else "nothing was run"
        put(
            f"{calls} calls: {calls - refused} understood ({renamed} by another name, {mended} mended), {refused} "
            f"refused, {drifted} unlike then; {ran}\n"
        )
    return 1 if drifted else 0


def _lines(number: int, told: "Replayed") -> str:
    import msgspec

    same = told.canonical == told.name
    state = f" ({told.state})" if told.state else ""
    rows = [f"{number}. {one_line(told.name)}{state}{'' if same else ' -> ' + one_line(told.canonical)}"]
    if told.arguments is not None:
        rows.append(f"arguments  {one_line(msgspec.json.encode(told.arguments).decode(), 400)}")
    if told.repairs:
        rows.append(f"mended     {' '.join(told.repairs)}{', read in one of several ways' if told.lossy else ''}")
    if told.error is not None:
        rows.append(f"refused    {told.error['code']}: {one_line(told.error['message'], 400)}")
        fix = told.error["fix"]
        if fix is not None:
            rows.append(f"next call  {fix['name']} {one_line(msgspec.json.encode(fix['arguments']).decode(), 200)}")
    if told.then is None:
        rows.append("then       no result was recorded")
    else:
        rows.append(f"then       {'ok' if told.then.ok else 'failed'}: {one_line(told.then.content)}")
    if told.now is not None:
        alike = "the same" if told.now.same else ("ok" if told.now.ok else "failed")
        rows.append(f"now        {alike}{'' if told.now.same else ': ' + one_line(told.now.content)}")
    elif told.not_run:
        rows.append(f"now        not run: {one_line(told.not_run)}")
    if told.drift:
        rows.append(f"unlike     {one_line(told.drift, 400)}")
    return rows[0] + "\n" + "".join(f"   {row}\n" for row in rows[1:])


def import_file(home: str, path: str, workspace: str, as_json: bool) -> int:
    """Import a session file and print the new session's id."""
    from codewhale.app.importing import import_session
    from codewhale.frontends.lines import object_line

    try:
        told = asyncio.run(import_session(path, home, workspace, os.environ))
    except FileNotFoundError as error:
        raise ChoiceError(f"{path}: {error.strerror}") from error
    put(object_line(told) + "\n" if as_json else told.session + "\n")
    if not as_json:
        for line in _summary(told):
            say(line)
    return 0


def _summary(told: "Imported") -> list[str]:
    lines = [f"codewhale: imported {told.messages} messages with {told.calls} calls; nothing was run"]
    for sentence, counts in (("under today's names", told.renamed), ("of tools that are not here", told.unknown)):
        if counts:
            lines.append(f"{sentence}: {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}")
    if told.left_out:
        lines.append(f"{told.left_out} pieces have no form here and were left out (system texts, lone results)")
    return lines
