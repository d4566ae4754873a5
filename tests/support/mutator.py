"""Damage to tool calls, by kind: what models do to the argument string (P) and to the arguments (A).

Knows nothing of how calls are repaired. Every operator says what may become of what it makes: `exact`, the very call
must come back; `refuse`, it must not run; `choice`, a reading has to be chosen: it may come back where the tool only
reads.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

Label = Literal["exact", "refuse", "choice"]
Schema = dict[str, Any]


class Damaged(NamedTuple):
    """A spoiled call: the raw string, what may be done with it, and the arguments that were meant by it."""

    operator: str
    raw: str
    label: Label
    meant: dict[str, Any]


def _dump(arguments: dict[str, Any], chance: random.Random) -> str:
    """Arguments as models write them."""
    spaced = chance.random() < 0.7
    return json.dumps(arguments, ensure_ascii=chance.random() < 0.5, separators=(", ", ": ") if spaced else (",", ":"))


# ---------------------------------------------------------------------- the string

Spoil = Callable[[str, dict[str, Any], random.Random], tuple[str, Label] | None]


def _strings(raw: str) -> list[tuple[int, int]]:
    """Spans of the string literals of valid JSON, quotes included."""
    return [match.span() for match in re.finditer(r'"(?:\\.|[^"\\])*"', raw)]


def _outside(raw: str) -> list[int]:
    """Positions outside of strings."""
    inside = set()
    for first, last in _strings(raw):
        inside.update(range(first, last))
    return [at for at in range(len(raw)) if at not in inside]


def p1_trailing_comma(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A comma before a closer."""
    places = [at for at in _outside(raw) if raw[at] in "}]" and raw[at - 1] not in "{["]
    if not places:
        return None
    at = chance.choice(places)
    return raw[:at] + chance.choice([",", ", ", ",\n"]) + raw[at:], "exact"


def p2_closer_missing(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The last brace is missing. Where a number stands before it, it may have lost digits."""
    cut = raw[:-1].rstrip()
    return (cut, "choice" if cut[-1].isdigit() else "exact") if cut != "{" else None


def p2_closer_too_many(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A closer too many at the end."""
    return raw + chance.choice(["}", "]", "}}", "\n}", "]}"]), "exact"


def p3_python(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Python's own words for the same."""
    return repr(arguments), "exact"


def p4_bare_keys(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Keys without quotes."""
    return _keys(raw, lambda key: key) if arguments else None


def p4_smart_keys(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Keys in a typesetter's quotes."""
    return _keys(raw, lambda key: f"“{key}”") if arguments else None


def _keys(raw: str, say: Callable[[str], str]) -> tuple[str, Label]:
    pieces, at = [], 0
    for first, last in _strings(raw):
        if re.match(r"\s*:", raw[last:]) and re.fullmatch(r"\w+", raw[first + 1 : last - 1]):
            pieces += [raw[at:first], say(raw[first + 1 : last - 1])]
            at = last
    return "".join([*pieces, raw[at:]]), "exact"


def p5_fence(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """In a code fence."""
    return f"```{chance.choice(['json', '', 'JSON'])}\n{raw}\n```", "exact"


def p5_prose(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """With a sentence before or after."""
    before = chance.choice(["", "Here are the arguments:\n", "Sure! ", "I will call it with: "])
    after = chance.choice(["\nThat should do it.", "", " Let me know."])
    return (before or "Arguments: ") + raw + after, "exact"


def p6_raw_controls(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Line feeds and tabs as they are, within strings."""
    spoiled = re.sub(r"(?<!\\)((?:\\\\)*)\\([nt])", lambda m: m[1] + {"n": "\n", "t": "\t"}[m[2]], raw)
    return None if spoiled == raw else (spoiled, "exact")


def p7_encoded_twice(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The JSON of the JSON."""
    return json.dumps(raw), "exact"


def p8_inner_quotes(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Quotes within strings without their backslash."""
    spoiled = re.sub(r'(?<!\\)\\"', '"', raw)
    return None if spoiled == raw else (spoiled, "choice")


def p9_bad_escapes(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Doubled backslashes made single, where JSON then knows no such escape."""
    pieces, at, changed, mixed = [], 0, False, False
    for first, last in _strings(raw):
        inner = raw[first:last]
        spoiled = re.sub(r'(?<!\\)\\\\(?=[^"\\/bfnrtu])', r"\\", inner)
        if spoiled != inner:
            changed = True
            mixed = mixed or re.search(r"(?<!\\)(?:\\\\)*\\[nrt]", inner) is not None
            mixed = mixed or "\\\\" in spoiled
        pieces += [raw[at:first], spoiled]
        at = last
    return ("".join([*pieces, raw[at:]]), "choice" if mixed else "exact") if changed else None


def p10_twice(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The same object again."""
    return raw + chance.choice(["", "\n", " "]) + raw, "exact"


def p11_comments(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A remark where JSON has none."""
    places = [at + 1 for at in _outside(raw) if raw[at] in "{,"]
    at = chance.choice(places)
    return raw[:at] + chance.choice([" // as asked\n", " /* the arguments */ "]) + raw[at:], "exact"


def p12_comma_missing(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """No comma between two members."""
    places = [at for at in _outside(raw) if raw[at] == "," and re.match(r',\s*"\w+"\s*:', raw[at:])]
    if not places:
        return None
    at = chance.choice(places)
    return raw[:at] + chance.choice([" ", "\n"]) + raw[at + 1 :].lstrip(), "choice"


def p13_cut(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Cut off, within a string or where another value must follow."""
    spans = _strings(raw)
    inside = [at for first, last in spans for at in range(first + 1, last)]
    open_ends = [at + 1 for at in _outside(raw) if raw[at] in ":,"]
    return (raw[: chance.choice(inside + open_ends)], "refuse") if inside else None


def p14_nothing(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Nothing at all, of a call that has no arguments."""
    return None if arguments else (chance.choice(["", " ", "null", "[]"]), "exact")


def p15_empty_first(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """An empty object beside the full one."""
    return ("{}" + chance.choice(["", "\n", " "]) + raw, "exact") if arguments else None


def p2_opener_missing(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The first brace is missing."""
    return (raw[1:], "exact") if arguments else None


def p2_wrong_closer(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """An inner closer of the other kind, missing, or one too many."""
    places = [at for at in _outside(raw[:-1]) if raw[at] in "}]"]
    if not places:
        return None
    at = chance.choice(places)
    instead = {"}": "]", "]": "}"}[raw[at]]
    return raw[:at] + chance.choice([instead, "", raw[at] * 2]) + raw[at + 1 :], "choice"


def p3_shouted(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Python's or a database's words for truth."""
    say = chance.choice([str.capitalize, str.upper])
    places = _outside(raw)
    words = [m for m in re.finditer(r"\b(?:true|false)\b", raw) if m.start() in places]
    for match in reversed(words):
        raw = raw[: match.start()] + say(match.group()) + raw[match.end() :]
    return (raw, "exact") if words else None


def p4_smart_quotes(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A typesetter's quotes around everything."""
    if not arguments or re.search(r"[“”]|\\u201[cd]", raw):
        return None
    for first, last in reversed(_strings(raw)):
        raw = f"{raw[:first]}“{raw[first + 1 : last - 1]}”{raw[last:]}"
    return raw, "exact"


def p4_equals(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Another mark than a colon."""
    mark = chance.choice(["=", " => ", "："])
    places = [at for at in _outside(raw) if raw[at] == ":"]
    for at in reversed(places):
        raw = raw[:at] + mark + raw[at + 1 :]
    return (raw, "exact") if places else None


def p5_prose_and_fence(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A fence among sentences that hold quotes and braces."""
    before = chance.choice(['Let me "do" this:', "The form is {key: value}.", "1. Call it"])
    after = chance.choice(['This is what "it" says.', "It has no {braces}.", "Done?"])
    return f"{before}\n\n```json\n{raw}\n```\n\n{after}", "exact"


def p5_around(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Within something else of one line."""
    before, after = chance.choice(
        [
            ("`", "`"),
            ("(", ")"),
            ("args = ", ";"),
            ("<arguments>", "</arguments>"),
            ("\ufeff", ""),
            ("", "</s>"),
            ("", "\0"),
        ]
    )
    return before + raw + after, "exact"


def p7_half_encoded(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """Escaped as a string holds it, without that string's quotes; or in quotes and not escaped."""
    inner = json.dumps(raw, ensure_ascii=False)
    return (chance.choice([inner[1:-1], f'"{raw}"']), "exact") if arguments else None


def p7_in_single_quotes(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The JSON as a string of Python's."""
    return (repr(raw), "exact") if arguments else None


def p8_one_quote(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """One quote within a string without its backslash."""
    places = [match.start() for match in re.finditer(r'(?<!\\)\\"', raw)]
    if not places:
        return None
    at = chance.choice(places)
    return raw[:at] + raw[at + 1 :], "choice"


def p8_quote_missing(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A string without its first or its last quote."""
    spans = _strings(raw)
    if not spans:
        return None
    first, last = chance.choice(spans)
    at = chance.choice([first, last - 1])
    return raw[:at] + raw[at + 1 :], "choice"


def p9_one_escape(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A backslash before what JSON knows no escape for, once."""
    places = [match.start() for match in re.finditer(r'(?<!\\)\\\\(?=[^"\\/bfnrtu])', raw)]
    if not places:
        return None
    at = chance.choice(places)
    return raw[:at] + raw[at + 1 :], "choice"


def p10_in_a_list(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """The same object again, in a list or behind a comma."""
    return chance.choice([f"[{raw}, {raw}]", f"{raw},\n{raw}"]), "exact"


def p10_key_twice(raw: str, arguments: dict[str, Any], chance: random.Random) -> tuple[str, Label] | None:
    """A key twice, with the same value or with another."""
    if not arguments:
        return None
    key, value = next(iter(arguments.items()))
    if chance.random() < 0.5:
        return f"{raw[:-1]}, {json.dumps(key)}: {json.dumps(value)}}}", "exact"
    return f'{{{json.dumps(key)}: "something else", {raw[1:]}', "choice"


PAYLOAD: dict[str, Spoil] = {
    "P1": p1_trailing_comma, "P2c": p2_closer_missing, "P2x": p2_closer_too_many, "P3": p3_python,
    "P4": p4_bare_keys, "P4s": p4_smart_keys, "P5": p5_fence, "P5p": p5_prose, "P6": p6_raw_controls,
    "P7": p7_encoded_twice, "P8": p8_inner_quotes, "P9": p9_bad_escapes, "P10": p10_twice, "P11": p11_comments,
    "P12": p12_comma_missing, "P13": p13_cut, "P14": p14_nothing, "P15": p15_empty_first,
    "P2o": p2_opener_missing, "P2i": p2_wrong_closer, "P3w": p3_shouted, "P4q": p4_smart_quotes, "P4=": p4_equals,
    "P5f": p5_prose_and_fence, "P5a": p5_around, "P7h": p7_half_encoded, "P7s": p7_in_single_quotes,
    "P8o": p8_one_quote, "P8m": p8_quote_missing, "P9o": p9_one_escape, "P10l": p10_in_a_list, "P10k": p10_key_twice,
}  # fmt: skip

# ---------------------------------------------------------------------- the arguments

Bent = tuple[dict[str, Any], Label] | None
Bend = Callable[[dict[str, Any], Schema, random.Random], Bent]
OTHER_NAMES = {
    "path": ["file_path", "filename", "filePath", "file"], "command": ["cmd"], "content": ["contents", "text"],
    "search": ["old_string", "old_str", "oldText"], "replace": ["new_string", "new_str", "replacement"],
    "pattern": ["regex", "query"], "max_results": ["maxResults", "limit"], "start_line": ["startLine", "offset"],
    "max_lines": ["maxLines", "limit"], "timeout_ms": ["timeoutMs"], "task_id": ["taskId"], "cwd": ["workdir"],
}  # fmt: skip


def _wants(schema: Schema, key: str, *kinds: str) -> bool:
    return schema.get("properties", {}).get(key, {}).get("type") in kinds


def _pick(arguments: dict[str, Any], chance: random.Random, good: Callable[[str], bool]) -> str | None:
    keys = [key for key in arguments if good(key)]
    return chance.choice(keys) if keys else None


def a1_words_for_values(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """Numbers and truth values as strings."""
    key = _pick(arguments, chance, lambda k: isinstance(arguments[k], bool | int | float))
    if key is None:
        return None
    return {**arguments, key: json.dumps(arguments[key])}, "exact"


def a2_one_for_list(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """The one element where a list is asked for."""
    key = _pick(arguments, chance, lambda k: isinstance(arguments[k], list) and len(arguments[k]) == 1)
    return None if key is None else ({**arguments, key: arguments[key][0]}, "exact")


def a3_text_for_list(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A list or an object as a JSON text."""
    key = _pick(arguments, chance, lambda k: isinstance(arguments[k], list | dict) and bool(arguments[k]))
    return None if key is None else ({**arguments, key: json.dumps(arguments[key])}, "exact")


def a4_other_name(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A key under the name it has elsewhere."""
    known = schema.get("properties", {})
    key = _pick(arguments, chance, lambda k: any(name not in known for name in OTHER_NAMES.get(k, ())))
    if key is None:
        return None
    name = chance.choice([name for name in OTHER_NAMES[key] if name not in known])
    return {(name if k == key else k): value for k, value in arguments.items()}, "exact"


def a5_unknown_key(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A key that the tool does not know."""
    return {**arguments, chance.choice(["verbose", "encoding", "recursive_mode", "priority"]): True}, "choice"


def a6_required_missing(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A required field left out."""
    key = _pick(arguments, chance, lambda k: k in schema.get("required", ()))
    return None if key is None else ({k: v for k, v in arguments.items() if k != key}, "refuse")


def a7_choice_in_capitals(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A choice of a list in another case."""
    choices = {key: row["enum"] for key, row in schema.get("properties", {}).items() if "enum" in row}
    key = _pick(
        arguments,
        chance,
        lambda k: isinstance(arguments[k], str) and arguments[k].upper() not in choices.get(k, (arguments[k].upper(),)),
    )
    return None if key is None else ({**arguments, key: arguments[key].upper()}, "exact")


def a8_nulls(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """Null for what was left out."""
    absent = [
        key for key in schema.get("properties", {}) if key not in arguments and key not in schema.get("required", ())
    ]
    return ({**arguments, **dict.fromkeys(absent)}, "exact") if absent else None


def a9_nested(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """One level too deep."""
    return ({chance.choice(["arguments", "input", "params"]): arguments}, "exact") if arguments else None


def a10_address(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A path as a file address."""
    path = arguments.get("path")
    if not isinstance(path, str) or "%" in path or not _wants(schema, "path", "string"):
        return None
    return {**arguments, "path": "file://" + path.replace(" ", "%20")}, "exact"


def a11_from_zero(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """Lines counted from nought."""
    key = _pick(arguments, chance, lambda k: k == "start_line" and arguments[k] == 1)
    return None if key is None else ({**arguments, key: 0}, "choice")


def a12_in_a_list(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """One value in a list of one."""
    key = _pick(
        arguments, chance, lambda k: _wants(schema, k, "string", "integer") and not isinstance(arguments[k], list)
    )
    return None if key is None else ({**arguments, key: [arguments[key]]}, "exact")


def a9_whole_call(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """The whole call where its arguments should stand."""
    told = json.dumps(arguments)
    whole = chance.choice(
        [
            {"id": "call_1", "type": "function", "function": {"arguments": told}},
            {"arguments": told},
            {"parameters": arguments, "reasoning": "as asked"},
            {"params": {"args": arguments}},
        ]
    )
    return (whole, "exact") if arguments else None


def a4_other_spelling(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """Keys in another case, or with other separators."""
    say = chance.choice(
        [str.upper, lambda k: k.replace("_", "-"), lambda k: re.sub(r"_(\w)", lambda m: m[1].upper(), k), str.title]
    )
    spelt = {say(key): value for key, value in arguments.items()}
    return (spelt, "exact") if list(spelt) != list(arguments) else None


def a1_all_words(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """Everything as a string."""
    told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    return (told, "exact") if told != arguments else None


def a1_with_units(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """A number with its unit."""
    key = _pick(arguments, chance, lambda k: isinstance(arguments[k], int) and not isinstance(arguments[k], bool))
    unit = chance.choice([" ms", " lines", "k", "%"])
    return None if key is None else ({**arguments, key: f"{arguments[key]}{unit}"}, "refuse")


def in_an_item(arguments: dict[str, Any], schema: Schema, chance: random.Random) -> Bent:
    """One of these within an object of a list."""
    key = _pick(
        arguments,
        chance,
        lambda k: isinstance(arguments[k], list) and bool(arguments[k]) and isinstance(arguments[k][0], dict),
    )
    if key is None:
        return None
    at = chance.randrange(len(arguments[key]))
    inner = schema.get("properties", {}).get(key, {}).get("items", {})
    for bend in chance.sample(
        [a1_words_for_values, a7_choice_in_capitals, a8_nulls, a12_in_a_list, a3_text_for_list], 5
    ):
        bent = bend(arguments[key][at], inner, chance)
        if bent is not None:
            items = [*arguments[key][:at], bent[0], *arguments[key][at + 1 :]]
            return {**arguments, key: items}, bent[1]
    return None


ARGUMENTS: dict[str, Bend] = {
    "A1": a1_words_for_values, "A2": a2_one_for_list, "A3": a3_text_for_list, "A4": a4_other_name,
    "A5": a5_unknown_key, "A6": a6_required_missing, "A7": a7_choice_in_capitals, "A8": a8_nulls, "A9": a9_nested,
    "A10": a10_address, "A11": a11_from_zero, "A12": a12_in_a_list,
    "A9w": a9_whole_call, "A4s": a4_other_spelling, "A1a": a1_all_words, "A1u": a1_with_units, "An": in_an_item,
}  # fmt: skip
_WORST: dict[Label, int] = {"exact": 0, "choice": 1, "refuse": 2}


def damage(arguments: dict[str, Any], schema: Schema, seed: str) -> Iterator[Damaged]:
    """Every way a call can be spoiled: by each operator alone, and by each of one kind on top of each of the other."""
    chance = random.Random(seed)
    bent: list[tuple[str, dict[str, Any], Label]] = [("", arguments, "exact")]
    for code, bend in ARGUMENTS.items():
        if (made := bend(arguments, schema, chance)) is not None:
            bent.append((code, *made))
    if schema.get("required"):
        yield Damaged("P14", chance.choice(["", " ", "null"]), "refuse", arguments)
    for code, given, label in bent:
        raw = _dump(given, chance)
        if code:
            yield Damaged(code, raw, label, arguments)
        for kind, spoil in PAYLOAD.items():
            spoiled = spoil(raw, given, chance)
            if spoiled is not None:
                worst = max(label, spoiled[1], key=_WORST.__getitem__)
                if kind == "P2c" and worst == "exact" and set(schema.get("properties", ())) - set(arguments):
                    worst = "choice"  # what did not come may have been cut off
                yield Damaged("+".join(filter(None, (code, kind))), spoiled[0], worst, arguments)
