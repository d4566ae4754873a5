"""What repair may do to a call: each code that a record of it holds, with what it means."""

from enum import StrEnum


class RepairCode(StrEnum):
    """One kind of repair. The value is what logs and JSON say; `words` is for people."""

    words: str

    def __new__(cls, value: str, words: str) -> "RepairCode":
        """A code and its sentence."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member

    # The text of the arguments.
    EXTRA_COMMA = "P1", "An extra comma was removed."
    BRACKET = "P2", "A bracket was missing, extra or of the wrong kind."
    PYTHON_LITERAL = "P3", "Single or triple quotes, or Python's words and numbers, were read as JSON."
    ODD_QUOTES = "P4", "A key or value without quotes, typographic quotes or another sign for a colon was read."
    SURROUNDED = "P5", "A code fence or text around the object was removed."
    RAW_CONTROL = "P6", "A string contained an unescaped line feed or control character."
    ENCODED_TWICE = "P7", "The object came as a JSON string, or with the escapes of one."
    INNER_QUOTE = "P8", "A quote within a string had no backslash."
    BAD_ESCAPE = "P9", "A backslash that starts no JSON escape was kept as a backslash."
    SENT_TWICE = "P10", "The same object or key came more than once."
    COMMENT = "P11", "A comment was removed."
    COMMA_MISSING = "P12", "A comma between two members was missing."
    NOTHING = "P14", "Nothing, or null, was read as no arguments."
    BESIDE = "P15", "An empty value beside the object was left out, or a lone value became the one argument."
    # The arguments.
    TYPE = "A1", 'A value came as another type: 5 as "5", true as "true" or 1.'
    ONE_FOR_LIST = "A2", "One item came where a list is wanted."
    TEXT_FOR_JSON = "A3", "A list or an object came as JSON in a string."
    OTHER_KEY = "A4", "An argument came under another name or spelling."
    UNKNOWN_KEY = "A5", "An argument that the tool does not have was removed."
    CHOICE = "A7", "One of a list of words came in another case or spelling."
    NULL = "A8", "An optional argument that was null was removed."
    NESTED = "A9", "The arguments were nested one level too deep."
    DRESSED_PATH = "A10", "A path came as an address, in quotes or with a line number."
    LINE_ZERO = "A11", "Line 0 was read as line 1."
    LIST_FOR_ONE = "A12", "A value came in a list, or a text as its lines or words."
    # The name.
    RESPELT = "N1", "The name came in another case or with other separators."
    DEPRECATED = "N2", "The tool was called by a deprecated name."
    OTHER_HARNESS = "N3", "A call of another agent's tool became a call of ours."
    DRESSED_NAME = "N4", "A prefix, suffix or wrapper around the name was removed."
    MISSPELT = "N5", "The one tool whose name is nearly the same was meant."
    VERB = "I1", "A verb became the call of the tool that does it."
    # Calls in the text of an answer, by their form.
    TEXT_DSML = "T1", "DeepSeek's DSML."
    TEXT_TOOL_CALL = "T2", "JSON in a `tool_call` tag, as Hermes writes it."
    TEXT_FUNCTION = "T3", "A `function` tag with `parameter` tags, as Qwen writes it."
    TEXT_DEEPSEEK = "T4", "DeepSeek's special tokens."
    TEXT_KIMI = "T5", "Kimi's special tokens."
    TEXT_GLM = "T6", "A name with `arg_key` and `arg_value` tags, as GLM writes it."
    TEXT_MISTRAL = "T7", "Mistral's `[TOOL_CALLS]`."
    TEXT_INVOKE = "T8", "An `invoke` tag with parameters."
    TEXT_JSON = "T9", "JSON as the whole answer or behind a special token."
    TEXT_PYTHON = "T10", "Calls in Python's words."
    TEXT_HARMONY = "T11", "A message to a function, as gpt-oss writes it."
    TEXT_REACT = "T12", "`Action:` and `Action Input:`."
    TEXT_ARROW = "T13", "`{tool => ..., args => {...}}`."
    TEXT_FENCE = "T14", "A code fence labelled as a call."
    TEXT_NAME_TAG = "T17", "A tag that is the tool's name, with a tag for each argument."
