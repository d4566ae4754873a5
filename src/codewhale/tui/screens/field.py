"""A line to type into that never holds what a terminal would obey, whatever is pasted or put into it."""

from textual.widgets import Input

from codewhale.lib.text import sanitise


class Field(Input):
    """Textual's line, without control, bidi and zero-width characters; a tab or a line end is a blank."""

    DEFAULT_CSS = """
    Field, Field:focus, Field.-invalid, Field.-invalid:focus { border: none; height: 1; padding: 0; }
    """

    def validate_value(self, value: str) -> str:
        """The value as it may stand here."""
        if value.isprintable() and value.isascii():
            return value
        flat = value.replace("\t", " ").replace("\n", " ")
        return "".join(char for char in flat if sanitise(char) == char)
