"""Judging a call where mending is switched off: what came is taken as it is, or refused with what is wrong with it."""

from typing import Any

import msgspec

from codewhale.catalog.arguments import whole
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import ToolSpec
from codewhale.repair.intents import VERBS, Unclear, lower
from codewhale.repair.judge import Verdict, invalid, reads_only, signature, unknown
from codewhale.repair.names import Named, NameRefused, bare_names, resolve


def judge_strictly(name: str, raw: str, tools: Catalog, *, cut: bool, names: bool) -> Verdict:
    """What a call says. With `names` a tool is also known by its other names; nothing else is made out."""
    if name not in tools.rows and (gone := next(filter(None, map(tools.gone, bare_names(name))), "")):
        return Verdict(name, error=unknown(name, tools, gone))
    value, fault = _value(raw)
    try:
        named = resolve(name, value, tools.rows) if names else _exact(name, value, tools)
    except NameRefused as refusal:
        return Verdict(name, error=unknown(name, tools, str(refusal), refusal.fix))
    except Unclear as unclear:
        return Verdict(name, error=unclear.error)
    if named is None:
        return Verdict(name, error=unknown(name, tools))
    if cut:
        fault = f"they stand in an answer that hit its length limit, and only {len(raw)} characters came"
    if fault:
        return _verdict(named, None, _unreadable(named.spec, fault))
    given = value if named.given is None else named.given
    given = whole({key: item for key, item in given.items() if item is not None})
    problems = check(given, named.spec.parameters)
    error = invalid(problems, given, named.spec) if problems else None
    if error is None and named.lossy and not reads_only(named.spec):
        error = unknown(name, tools)
    return _verdict(named, given, error)


def _verdict(named: Named, given: dict[str, Any] | None, error: ToolError | None) -> Verdict:
    return Verdict(named.spec.name, named.spec, given, named.alias, named.repairs, named.lossy, error)


def _value(raw: str) -> tuple[dict[str, Any], str]:
    """The object that `raw` is, and what is wrong with it where it is none."""
    try:
        value = msgspec.json.decode(raw) if raw.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return {}, str(error) or type(error).__name__
    return (value, "") if isinstance(value, dict) else ({}, "they are no object")


def _exact(name: str, value: dict[str, Any], tools: Catalog) -> Named | None:
    found = tools.resolve(name)
    if found is not None:
        return Named(found.spec, found.alias)
    call = lower(name, value, tools.rows) if name in VERBS else None
    if call is None:
        return None
    return Named(tools.rows[call.tool], repairs=call.codes, lossy=call.chosen, given=call.arguments)


def _unreadable(spec: ToolSpec, fault: str) -> ToolError:
    return ToolError(
        "invalid_input",
        f"The arguments of {spec.name} could not be read: {fault}. Nothing was run. Send one JSON object with "
        f"{signature(spec)}.",
        field="arguments",
        expected="one JSON object",
        received=fault,
    )
