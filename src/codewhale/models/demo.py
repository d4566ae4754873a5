"""The demonstration that comes with the program: a scripted model and the small repository it works on. The words are
`demo.json`; which turn is played follows from the request alone, so a resumed session goes on where it was."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.models.dialects.base import ProviderSettings
from codewhale.models.scripted import ScriptedProvider

NAME = "demo"
MODEL = "scripted-demo"
DEMO_FILE = Path(__file__).with_name("demo.json")
_DELAY = 0.3


class Demo(Struct, frozen=True, forbid_unknown_fields=True):
    """The first message, the repository's folder and files, the model's turns and what it says behind the last one."""

    prompt: str
    folder: str
    files: dict[str, str]
    turns: tuple[dict[str, Any], ...]
    end: str


def load_demo() -> Demo:
    """The demonstration, from the file beside this one."""
    return msgspec.json.decode(DEMO_FILE.read_bytes(), type=Demo)


def demo_provider() -> ScriptedProvider:
    """The scripted model."""
    demo = load_demo()

    def turn(request: dict[str, Any]) -> dict[str, Any]:
        said = sum(message.get("role") == "assistant" for message in request["messages"])
        chosen = demo.turns[said] if said < len(demo.turns) else {"text": demo.end}
        return {"delay": _DELAY, **chosen}

    return ScriptedProvider(turn, name=NAME, settings=ProviderSettings(dialect="scripted", default_model=MODEL))
