"""Replayed calls and imports as people read them."""

import msgspec

from codewhale.lib.text import one_line
from codewhale.protocol.replays import Imported, Replayed


def call_text(number: int, told: Replayed) -> str:
    """A replayed call in a few lines, safe to print."""
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


def import_lines(told: Imported) -> list[str]:
    """What an import took over and what it did not, each a line."""
    lines = [f"codewhale: imported {told.messages} messages with {told.calls} calls; nothing was run"]
    for sentence, counts in (("under today's names", told.renamed), ("of tools that are not here", told.unknown)):
        if counts:
            lines.append(f"{sentence}: {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}")
    if told.left_out:
        lines.append(f"{told.left_out} pieces have no form here and were left out (system texts, lone results)")
    return lines
