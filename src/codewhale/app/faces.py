"""The parts of this room that are built when an interface first asks for them: rows as in the table, which cannot name
what itself reads it."""

from codewhale.app.table import Row

FACES: dict[str, Row] = {
    "answers": Row("codewhale.app.answers:Answers", ("part", "control", "command_registry", "open_session")),
    "choices": Row("codewhale.app.choices:Choices", ("place", "routes", "redactor")),
    "looking": Row("codewhale.app.looking:Looking", ("part", "sessions")),
}

DEMO = Row("codewhale.app.demonstration:start_demo")
