"""What is imported when it is first needed, as rows: programs of the person's own are started rarely, and all that
starts them is not there before the first frame."""

import importlib
from typing import Any

LATER: dict[str, str] = {
    "edit_text": "codewhale.tui.composer.outside:edit_text",
    "edit_file": "codewhale.tui.composer.outside:edit_file",
    "image_of_clipboard": "codewhale.tui.composer.outside:image_of_clipboard",
}


def later(name: str) -> Any:
    """The function of a row. Raises KeyError for another name."""
    module, _, attribute = LATER[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
