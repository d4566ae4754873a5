"""A weak model as a program: it knows what it wants, errs at given rates when it says so, and learns of its errors from
the text that comes back, and from nothing else."""

import json
import random
import re
from typing import Any

from support.mutator import ARGUMENTS, PAYLOAD

Given = dict[str, Any]
Turn = dict[str, Any]
Rates = dict[str, Any]

# What other programs call these tools and their arguments.
ELSEWHERE: dict[str, tuple[str, dict[str, str]]] = {
    "exec_shell": ("Bash", {}),
    "read_file": ("Read", {"path": "file_path"}),
    "write_file": ("Write", {"path": "file_path"}),
    "edit_file": ("Edit", {"path": "file_path", "search": "old_string", "replace": "new_string"}),
    "grep_files": ("Grep", {}),
    "list_dir": ("LS", {}),
    "checklist_write": ("TodoWrite", {}),
}
LEARNT: dict[str, dict[str, str]] = {
    "read_file": {"path": "file_path", "start_line": "offset", "max_lines": "limit"},
    "write_file": {"path": "filename", "content": "text"},
    "edit_file": {"path": "file_path", "search": "old_str", "replace": "new_str"},
    "exec_shell": {"command": "cmd"},
    "grep_files": {"pattern": "query"},
    "file_search": {"query": "pattern"},
    "apply_patch": {"patch": "diff"},
    "checklist_write": {"todos": "items"},
}
_FAILED = re.compile(r"Error \(|\S+ was not run\b|This call was blocked")
_FIX = re.compile(r"^Next call: (\w+) (\{.*\})$|1\. (\w+) (\{.*?\})(?= 2\. |$)", re.M)


class FrailModel:
    """One session of the model on one task: a policy from a request to a turn. `damaged` counts what it spoilt."""

    def __init__(self, task: dict[str, Any], rates: Rates, seed: str) -> None:
        self._task = task
        self._rates = rates
        self._chance = random.Random(seed)
        self._steps: list[tuple[str, Given]] = [(name, given) for name, given in task["steps"]]
        self._step = 0
        self._read = self._failures = 0
        self._sent: tuple[str, Given] | None = None
        self._fix: tuple[str, Given] | None = None
        self._as_text = False
        self._seen = ""
        self.damaged = 0
        self._names, self._keys = self._beliefs()

    def _beliefs(self) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        share = {row["code"]: row["share"] for row in self._rates["beliefs"]}
        tools = sorted({name for name, _ in self._steps})
        names = {tool: ELSEWHERE[tool][0] for tool in tools if tool in ELSEWHERE and self._draw(share["N3"])}
        keys = {tool: ELSEWHERE[tool][1] for tool in names}
        keys.update({tool: LEARNT[tool] for tool in tools if tool in LEARNT and self._draw(share["A4"])})
        return names, {tool: dict(wrong) for tool, wrong in keys.items()}

    def _draw(self, share: float) -> bool:
        return self._chance.random() < share

    def __call__(self, request: dict[str, Any]) -> Turn:
        """The next turn, from what was said since the last one."""
        self._learn(request["messages"])
        if self._failures > self._rates["conduct"]["patience"]["count"]:
            return {"text": "I could not get this to work, so I stop here."}
        if self._fix is not None:
            self._sent = self._fix
        elif self._step < len(self._steps):
            self._sent = self._steps[self._step]
        else:
            return {"text": self._conclusion()}
        schemas = {row["function"]["name"]: row["function"]["parameters"] for row in request["tools"]}
        return self._say(*self._sent, schemas)

    def _conclusion(self) -> str:
        find = self._task.get("find")
        found = re.findall(find, self._seen, re.M) if find else []
        return f"Done. The answer is {found[-1]}." if found else "Done."

    # ------------------------------------------------------------------ what came back

    def _learn(self, messages: list[dict[str, Any]]) -> None:
        """What became of the last call, by the text that came back for it."""
        fresh = [message for message in messages[self._read :] if message["role"] != "assistant"]
        self._read = len(messages)
        if self._sent is None:
            return
        said = "\n".join(str(message.get("content")) for message in fresh)
        results = [str(message.get("content")) for message in fresh if message["role"] == "tool"]
        ran = bool(results) and not any(_FAILED.match(text) for text in results)
        if ran:
            self._seen += said + "\n"
            self._failures, self._as_text = 0, False
            wanted = self._steps[self._step] if self._step < len(self._steps) else None
            if self._fix is None or (wanted and self._fix[0] == wanted[0]):
                self._step += 1
            self._fix = None
            return
        self._failures += 1
        self._fix = None
        self._heed(said)

    def _heed(self, said: str) -> None:
        """Beliefs that the text sets right, and the call it proposes."""
        conduct = self._rates["conduct"]
        for tool in list(self._names):
            if re.search(rf"\b{tool}\b", said) and self._draw(conduct["heeds_name"]["share"]):
                del self._names[tool]
        tool = self._sent[0] if self._sent else ""
        for right in list(self._keys.get(tool, {})):
            if re.search(rf"[`\"]{right}[`\"]", said) and self._draw(conduct["heeds_name"]["share"]):
                del self._keys[tool][right]
        fix = _FIX.search(said)
        if fix is None or not self._draw(conduct["follows_fix"]["share"]):
            return
        try:
            self._fix = (fix[1] or fix[3], json.loads(fix[2] or fix[4]))
        except ValueError:
            self._fix = None

    # ------------------------------------------------------------------ what is said

    def _say(self, tool: str, given: Given, schemas: dict[str, Any]) -> Turn:
        followed = self._fix is not None
        name = tool if followed else self._names.get(tool, tool)
        keys = {} if followed else self._keys.get(tool, {})
        said = {keys.get(key, key): value for key, value in given.items()}
        self.damaged += (name, said) != (tool, given)
        slip = self._slip()
        if self._as_text and self._draw(self._rates["conduct"]["text_again"]["share"]):
            slip = {"code": "T2", "kind": "text"}
        self._as_text = False
        spoilt = _spoil(slip, name, said, schemas.get(tool, {}), self._chance) if slip else None
        self.damaged += spoilt is not None
        if spoilt is None:
            return {"calls": [{"name": name, "arguments": json.dumps(said, ensure_ascii=False)}]}
        self._as_text = slip is not None and slip["kind"] == "text"
        return spoilt

    def _slip(self) -> dict[str, Any] | None:
        at = self._chance.random()
        for row in self._rates["slips"]:
            at -= row["share"]
            if at < 0:
                found: dict[str, Any] = row
                return found
        return None


def _spoil(slip: dict[str, Any], name: str, given: Given, schema: Given, chance: random.Random) -> Turn | None:
    """A turn with one error in it; None where this error cannot be made in this call."""
    code, kind = slip["code"], slip["kind"]
    raw = json.dumps(given, ensure_ascii=False)
    if kind == "payload":
        made = PAYLOAD[code](raw, given, chance)
        if made is None:
            return None
        turn: Turn = {"calls": [{"name": name, "arguments": made[0]}]}
        return {**turn, "finish": "length"} if code == "P13" and chance.random() < 0.5 else turn
    if kind == "arguments":
        bent = ARGUMENTS[code](given, schema, chance)
        return None if bent is None else {"calls": [{"name": name, "arguments": json.dumps(bent[0])}]}
    if kind == "name":
        return {"calls": [{"name": _misnamed(code, name, chance), "arguments": raw}]}
    if kind == "text":
        return {"text": _as_text(code, name, given)}
    return {"text": "I will do that now." if code == "C1" else ""}


def _misnamed(code: str, name: str, chance: random.Random) -> str:
    if code == "N1":
        camel = "".join(part.capitalize() for part in name.split("_"))
        return chance.choice([camel, name.replace("_", "-"), name.upper(), name.replace("_", "")])
    if code == "N4":
        return chance.choice([f"functions.{name}", f"functions.{name}:0", f"default_api.{name}", f"tools/{name}"])
    if code == "N4s":
        return chance.choice([f"{name} </parameter", f"{name} </function", f"{name}</tool_call>", f"{name}\n"])
    if code == "N5":
        at = chance.randrange(1, len(name) - 1)
        return name[:at] + name[at + 1 :]
    return ""


def _as_text(code: str, name: str, given: Given) -> str:
    """The call as text: DeepSeek's marks, Hermes' JSON or Qwen's tags."""
    if code == "T2":
        return f"<tool_call>\n{json.dumps({'name': name, 'arguments': given}, ensure_ascii=False)}\n</tool_call>"
    plain = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    if code == "T3":
        inside = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in plain.items())
        return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"
    inside = ""
    for key, value in plain.items():
        kind = "true" if isinstance(given[key], str) else "false"
        inside += f'<｜DSML｜parameter name="{key}" string="{kind}">{value}</｜DSML｜parameter>\n'
    return f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{name}">\n{inside}</｜DSML｜invoke>\n</｜DSML｜tool_calls>'
