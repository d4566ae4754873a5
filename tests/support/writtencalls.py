"""Calls as models write them into text: formats by hand, what leads to calls that are meant, and the many ways of
showing one that must not run. Samples are every format in every setting; the labels belong to the settings."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

Call = tuple[str, dict[str, Any]]
Write = Callable[[list[Call]], str]


class Sample(Struct, frozen=True):
    """A text and the calls in it that are meant; a call of None is one that must be refused."""

    id: str
    text: str
    calls: tuple[Call | None, ...] = ()
    before: str | None = None


# ---------------------------------------------------------------------- formats


def _js(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _js(value)


def _pairs(name: str, arguments: dict[str, Any], call: str, parameter: str) -> str:
    inner = "\n".join(parameter.format(key=key, value=_plain(value)) for key, value in arguments.items())
    return call.format(name=name, inner=inner)


def dsml(bar: str, section: str) -> Write:
    def write(calls: list[Call]) -> str:
        rows = []
        for name, arguments in calls:
            inner = "".join(
                f'<{bar}DSML{bar}parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">'
                f"{_plain(value)}</{bar}DSML{bar}parameter>\n"
                for key, value in arguments.items()
            )
            rows.append(f'<{bar}DSML{bar}invoke name="{name}">\n{inner}</{bar}DSML{bar}invoke>')
        body = "\n".join(rows)
        return f"<{bar}DSML{bar}{section}>\n{body}\n</{bar}DSML{bar}{section}>" if section else body

    return write


def _hermes(calls: list[Call]) -> str:
    return "\n".join(f"<tool_call>\n{_js({'name': n, 'arguments': a})}\n</tool_call>" for n, a in calls)


def _hermes_array(calls: list[Call]) -> str:
    return f"<tool_calls>{_js([{'name': n, 'arguments': a} for n, a in calls])}</tool_calls>"


def _qwen(calls: list[Call]) -> str:
    return "\n".join(
        _pairs(n, a, "<tool_call>\n<function={name}>\n{inner}\n</function>\n</tool_call>",
               "<parameter={key}>\n{value}\n</parameter>") for n, a in calls
    )  # fmt: skip


def _seed(calls: list[Call]) -> str:
    return "\n".join(
        _pairs(n, a, "<seed:tool_call>\n<function={name}>\n{inner}\n</function>\n</seed:tool_call>",
               "<parameter={key}>{value}</parameter>") for n, a in calls
    )  # fmt: skip


def _functions(calls: list[Call]) -> str:
    return "".join(f"<function={n}>{_js(a)}</function>" for n, a in calls)


def _glm(calls: list[Call]) -> str:
    return "\n".join(
        _pairs(n, a, "<tool_call>{name}\n{inner}\n</tool_call>",
               "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>") for n, a in calls
    )  # fmt: skip


def _deepseek(calls: list[Call]) -> str:
    rows = "\n".join(
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{_js(a)}\n```<｜tool▁call▁end｜>" for n, a in calls
    )
    return f"<｜tool▁calls▁begin｜>{rows}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"


def _deepseek31(calls: list[Call]) -> str:
    rows = "".join(f"<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{_js(a)}<｜tool▁call▁end｜>" for n, a in calls)
    return f"<｜tool▁calls▁begin｜>{rows}<｜tool▁calls▁end｜>"


def _kimi(calls: list[Call]) -> str:
    rows = "".join(
        f"<|tool_call_begin|>functions.{n}:{i}<|tool_call_argument_begin|>{_js(a)}<|tool_call_end|>"
        for i, (n, a) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{rows}<|tool_calls_section_end|>"


def _mistral(calls: list[Call]) -> str:
    return f"[TOOL_CALLS] {_js([{'name': n, 'arguments': a} for n, a in calls])}"


def _mistral_args(calls: list[Call]) -> str:
    return "".join(f"[TOOL_CALLS]{n}[ARGS]{_js(a)}" for n, a in calls)


def _minimax(calls: list[Call]) -> str:
    rows = "\n".join(
        _pairs(n, a, '<invoke name="{name}">\n{inner}\n</invoke>', '<parameter name="{key}">{value}</parameter>')
        for n, a in calls
    )
    return f"<minimax:tool_call>\n{rows}\n</minimax:tool_call>"


def _invoke(calls: list[Call]) -> str:
    rows = "\n".join(
        _pairs(n, a, '<invoke name="{name}">\n{inner}\n</invoke>', '<parameter name="{key}">{value}</parameter>')
        for n, a in calls
    )
    return f"<function_calls>\n{rows}\n</function_calls>"


def _tool_name(calls: list[Call]) -> str:
    rows = "\n".join(
        _pairs(n, a, "<invoke>\n<tool_name>{name}</tool_name>\n<parameters>\n{inner}\n</parameters>\n</invoke>",
               "<{key}>{value}</{key}>") for n, a in calls
    )  # fmt: skip
    return f"<function_calls>\n{rows}\n</function_calls>"


def _name_tags(calls: list[Call]) -> str:
    return "\n".join(_pairs(n, a, f"<{n}>\n{{inner}}\n</{n}>", "<{key}>{value}</{key}>") for n, a in calls)


def _python_tag(calls: list[Call]) -> str:
    return "<|python_tag|>" + "; ".join(_js({"name": n, "parameters": a}) for n, a in calls) + "<|eom_id|>"


def _harmony(calls: list[Call]) -> str:
    return "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{_js(a)}<|call|>"
        for n, a in calls
    )


def _granite(calls: list[Call]) -> str:
    return f"<|tool_call|>{_js([{'name': n, 'arguments': a} for n, a in calls])}"


def _nemotron(calls: list[Call]) -> str:
    return f"<TOOLCALL>{_js([{'name': n, 'arguments': a} for n, a in calls])}</TOOLCALL>"


def _internlm(calls: list[Call]) -> str:
    return "".join(f"<|action_start|><|plugin|>\n{_js({'name': n, 'parameters': a})}<|action_end|>" for n, a in calls)


def _longcat(calls: list[Call]) -> str:
    rows = (f"<longcat_tool_call>{_js({'name': n, 'arguments': a})}</longcat_tool_call>" for n, a in calls)
    return "\n".join(rows)


def _phi(calls: list[Call]) -> str:
    return f"functools{_js([{'name': n, 'arguments': a} for n, a in calls])}"


def _function_call(calls: list[Call]) -> str:
    return "\n".join(f"<function_call> {_js({'name': n, 'arguments': a})} </function_call>" for n, a in calls)


def _python_start(calls: list[Call]) -> str:
    return f"<|python_start|>{_pythonic(calls)}<|python_end|>"


def _olmo(calls: list[Call]) -> str:
    return "<function_calls>\n" + "\n".join(_pythonic([call])[1:-1] for call in calls) + "\n</function_calls>"


def _pythonic(calls: list[Call]) -> str:
    return "[" + ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls) + "]"


def _arrow(calls: list[Call]) -> str:
    (name, arguments), *_ = calls
    inner = "\n".join(f"  --{key} {_js(value)}" for key, value in arguments.items() if isinstance(value, str))
    return f'[TOOL_CALL]\n{{tool => "{name}", args => {{\n{inner}\n}}}}\n[/TOOL_CALL]'


STANDING: dict[str, Write] = {
    "dsml": dsml("｜", "function_calls"),
    "dsml-v4": dsml("｜", "tool_calls"),
    "dsml-ascii": dsml("|", "tool_calls"),
    "dsml-double": dsml("｜｜", "tool_calls"),
    "dsml-line": dsml("‖", "tool_calls"),
    "dsml-bare": dsml("｜", ""),
    "hermes": _hermes,
    "hermes-array": _hermes_array,
    "qwen-coder": _qwen,
    "seed": _seed,
    "function-json": _functions,
    "glm": _glm,
    "deepseek-v3": _deepseek,
    "deepseek-v3.1": _deepseek31,
    "kimi": _kimi,
    "mistral": _mistral,
    "mistral-args": _mistral_args,
    "minimax": _minimax,
    "invoke": _invoke,
    "tool-name": _tool_name,
    "name-tags": _name_tags,
    "llama-json": _python_tag,
    "harmony": _harmony,
    "granite": _granite,
    "nemotron": _nemotron,
    "internlm": _internlm,
    "longcat": _longcat,
    "phi": _phi,
    "function-call": _function_call,
    "llama-python": _python_start,
    "olmo": _olmo,
}
WHOLE: dict[str, Write] = {
    "json": lambda calls: _js([{"name": n, "arguments": a} for n, a in calls]),
    "json-parameters": lambda calls: "; ".join(_js({"name": n, "parameters": a}) for n, a in calls),
    "json-wire": lambda calls: _js({
        "tool_calls": [
            {"id": f"call_{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, (n, a) in enumerate(calls)
        ]
    }),
    "fenced-call": lambda calls: f"```tool_call\n{_js([{'name': n, 'arguments': a} for n, a in calls])}\n```",
    "tool-code": lambda calls: "```tool_code\n" + "\n".join(_pythonic([c])[1:-1] for c in calls) + "\n```",
    "pythonic": _pythonic,
}  # fmt: skip
SINGLE: dict[str, Write] = {
    "react": lambda calls: f"Thought: This comes first.\nAction: {calls[0][0]}\nAction Input: {_js(calls[0][1])}",
    "react-bare": lambda calls: f"Action: {calls[0][0]}\nAction Input: {_js(calls[0][1])}\nObservation: done",
    "arrow": _arrow,
}

# ---------------------------------------------------------------------- calls that are meant

READ: Call = ("read_file", {"path": "src/app.py"})
WINDOW: Call = ("read_file", {"path": "src/app.py", "start_line": 40, "max_lines": 20})
SEARCH: Call = ("grep_files", {"pattern": r"def \w+\(self, \"x\"\)", "path": "src", "case_insensitive": True})
WRITE: Call = ("write_file", {"path": "notes/größe.md", "content": '# Title\n\nHe said "no".\n\n- a\\b\n- 漢字\n'})
EDIT: Call = ("edit_file", {"path": "a.py", "search": "x = {'a': 1}", "replace": "x = {'a': [1, 2]}"})
SHELL: Call = ("exec_shell", {"command": "grep -rn \"a b\" . | sort | uniq -c > 'out put.txt' && echo done"})
LISTS: Call = ("checklist_write", {"todos": [{"content": "Read", "status": "completed"}, {"content": "Mend it"}]})
ONE_LINE = (READ, WINDOW, SEARCH, SHELL)
SETS = {
    "read": [READ], "window": [WINDOW], "search": [SEARCH], "write": [WRITE], "edit": [EDIT], "shell": [SHELL],
    "nested": [LISTS], "two": [READ, SEARCH], "three": [WRITE, SHELL, READ],
}  # fmt: skip
LEADS = (
    "",
    "I'll start with the file itself.\n\n",
    "Let me look at it:\n",
    "The failing test is in the parser module. Next I need to see how it is used.\n\n",
    "Okay.\n\nReading the configuration first.\n",
    "Plan:\n\n1. Find the bug\n2. Fix it\n3. Run the tests\n\n",
    "<think>The person wants a fix, so I have to see it first.</think>\n\n",
    "Done with the first part.\n\n",
    "我先看一下文件。\n\n",
)


def meant() -> Iterator[Sample]:
    """Calls in every format, single and several, after nothing or after words that lead to doing something."""
    for place, (format_name, write) in enumerate(STANDING.items()):
        for number, (set_name, calls) in enumerate(SETS.items()):
            lead = LEADS[(place + number) % len(LEADS)]
            yield Sample(f"{format_name}/{set_name}", lead + write(calls), tuple(calls), lead.rstrip())
    for format_name, write in WHOLE.items():
        for set_name, calls in SETS.items():
            yield Sample(f"{format_name}/{set_name}", write(calls), tuple(calls))
    for format_name, write in SINGLE.items():
        for call in (READ, SHELL) if format_name == "arrow" else (READ, WINDOW, SEARCH, EDIT):
            yield Sample(f"{format_name}/{call[0]}", write([call]), (call,))


# ---------------------------------------------------------------------- calls that are shown

SHOWN = {
    "fence": "The model answers with this:\n\n```\n{}\n```\n\nThe server turns it into a call.",
    "fence-xml": "Here is what such an answer looks like.\n\n```xml\n{}\n```\n",
    "tilde-fence": "It looks so:\n\n~~~text\n{}\n~~~\n",
    "fence-in-fence": "Put this into your README:\n\n````markdown\nUse it so:\n\n```\n{}\n```\n````\n",
    "open-fence": "I'll show the raw form.\n\n```\n{}",
    "fence-in-list": "1. Start the server.\n2. The answer holds:\n\n   ```\n   {}\n   ```\n\n3. Parse it.",
    "unfenced-tutorial": "Qwen and other families write calls into the text. To read a file the model emits:\n\n{}",
    "unfenced-then-more": "{}\n\nThis is what the parser has to find. It begins at the first mark.",
    "example": "For example:\n\n{}",
    "example-word": "Here is an example of a call.\n\n{}",
    "such-as": "The text then holds marks such as\n{}",
    "the-format": "The format of this family is\n\n{}",
    "heading": "# How calls are written\n\n## The marked form\n\n{}",
    "heading-more": "## The marked form\n\n{}\n\n## The JSON form\n\nSee below.",
    "list-item": "There are several dialects.\n\n- The marked one:\n  {}\n- The plain one: JSON.",
    "quote": "They wrote in the thread:\n\n> {}\n\nand asked why nothing ran.",
    "quoted": 'The log says "{}" and then stops.',
    "table": "| family | form |\n|---|---|\n| this one | {} |\n",
    "html": "<p>The raw answer:</p>\n<pre><code>\n{}\n</code></pre>\n",
    "html-open": "<details><summary>Raw answer</summary>\n\n{}\n\n</details>",
    "diff": "diff --git a/t.txt b/t.txt\n--- a/t.txt\n+++ b/t.txt\n@@ -1,2 +1,3 @@\n context\n+{}\n context",
    "diff-context": "Here is the change:\n\n@@ -3,4 +3,5 @@ def f():\n-old\n+new\n {}",
    "python": 'I added a test for it:\n\nSAMPLE = """\n{}\n"""\n\nassert parse(SAMPLE)',
    "python-end": "def sample():\n    return '''\n{}\n'''",
    "indented": "The parser sees this text:\n\n    {}\n\nand must not stop early.",
    "never": "Never write this into your answer:\n\n{}",
    "instead-of": "Use the tool interface instead of text such as this:\n\n{}",
    "you-would": "If the server does not parse calls, you would see\n\n{}",
    "log": "2026-03-01 12:00:03 INFO raw completion text:\n{}\n2026-03-01 12:00:04 INFO done",
    "transcript": "User: read the file\n\nAssistant:\n{}\n\nTool: contents",
    "answer": "The bug is in the parser: given\n\n{}\n\nit returns an empty list, since the closing mark is missing.",
    "yaml": "cases:\n  - name: first\n    text: |\n      {}\n",
    "inline": "When `{}` stands in a sentence it is a quotation.",
    "only-example": "{}\n\nThat is only an example; nothing should run.",
    "what-it-means": "This snippet means that the file is read:\n\n{}",
    "chinese": "模型输出的格式如下：\n\n{}",
    "prompt": "Add this to the system prompt so that the model knows the syntax.\n\n{}",
    "spec": "The specification defines a call as follows.\n\n{}\n\nOther content is text.",
    "pasted": "You pasted the following output:\n\n{}",
    "comment": "// The answer of the server:\n// {}\nconst calls = parse(text)",
    "numbered-doc": "1. Hermes\n\n{}\n\n2. Others",
    "would-send": "A model of that kind would send\n\n{}",
    "readme-tail": "# toolparse\n\nParses calls in text.\n\n## Usage\n\nGiven this output of a model:\n\n{}",
    "thought-then-answer": "<think>I could write\n{}\nbut the question is about docs.</think>\nThe docs are in docs/.",
}
PLAIN = (
    "Use `read_file` to read and `write_file` to write.",
    "```python\nread_file(path='a.py')\n```\n\nreads the file.",
    "The call is `{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}`.",
    '{"name": "codewhale", "version": "1.0.0", "scripts": {"test": "jest"}}',
    '```json\n{"name": "demo", "dependencies": {}}\n```',
    '{"name": "read_file", "description": "Read a file", "parameters": {"type": "object"}}',
    '[{"type": "function", "function": {"name": "read_file", "description": "d", "parameters": {"type": "object"}}}]',
    "I would use <tool_call> tags for that, or <function=...> ones.",
    "Action: none is needed.\n\nAll is done.",
    "Thought: the parser is fine.\n\nThe tests pass.",
    "[read the docs](https://example.org) and [x] done",
    "print('hello')",
    "```\nexec_shell(command='rm -rf /')\n```\nDo not run this.",
    "The tool call is: read_file(path='a.py')",
    "<div>\n<read_more>\n<path>x</path>\n</read_more>\n</div>",
    "Kimi marks calls by <|tool_call_begin|> and <|tool_call_end|>.",
    "[TOOL_CALLS] is Mistral's mark.",
    "<tool_call>",
    "<tool_call></tool_call>",
    "<tool_call>\nnot a call\n</tool_call>",
    "<function_calls>\n</function_calls>",
    "<invoke name=\"unknown_thing\">\n<parameter name=\"a\">b</parameter>\n</invoke>",
)  # fmt: skip


def shown() -> Iterator[Sample]:
    """Calls in every format that are not meant, and texts that speak of calls."""
    for format_name, write in {**STANDING, "json": WHOLE["json"], "react": SINGLE["react"]}.items():
        for setting, frame in SHOWN.items():
            for call in (READ, SHELL)[: 1 + (len(setting) % 2)]:
                yield Sample(f"{format_name}/{setting}/{call[0]}", frame.replace("{}", write([call])))
    for number, text in enumerate(PLAIN):
        yield Sample(f"plain/{number}", text)
