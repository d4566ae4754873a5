"""What a public server's own parsers take of texts: reads `{"id","parser","text","tools"}` a line on stdin, prints
`{"id","calls"}`. Runs in an environment of its own, with `llm-router-utils`: the parsers of SGLang by themselves.
"""

import importlib
import json
import pkgutil
import sys
from typing import Any

PACKAGE = "llm_router_utils.sglang.srt"


def detector(name: str) -> Any:
    """The parser of that name."""
    folder = importlib.import_module(f"{PACKAGE}.function_call")
    for module in pkgutil.iter_modules(folder.__path__):
        if module.name.startswith(("hermes", "qwen3", "deepseek", "kimik2", "glm4_", "mistral", "minimax")):
            found = getattr(importlib.import_module(f"{PACKAGE}.function_call.{module.name}"), name, None)
            if found is not None:
                return found()
    raise LookupError(name)


def main() -> None:
    """Answer every line."""
    tool = importlib.import_module(f"{PACKAGE}.entrypoints.openai.protocol").Tool
    for line in sys.stdin:
        asked = json.loads(line)
        tools = [tool(type="function", function=function) for function in asked["tools"]]
        result = detector(asked["parser"]).detect_and_parse(asked["text"], tools)
        calls = [[call.name, json.loads(call.parameters)] for call in result.calls]
        print(json.dumps({"id": asked["id"], "calls": calls}), flush=True)


if __name__ == "__main__":
    main()
