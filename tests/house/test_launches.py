"""Every place that starts a program, with how it is held: a new one stands in the table, or fails here."""

import ast

from support.house import nodes, sources

# Whose program it is, and the profile that the call names. Only what is the person's own, or writes what no profile
# opens, is started with none; `own` programs are the harness's choice, in an environment of its own.
LAUNCHES = {
    ("app/demonstration.py", "own", "'none'"),  # git makes the repository of the demonstration, in a fresh folder
    ("cli/sandbox.py", "person", "args.profile"),
    ("codesearch/plaintext.py", "own", "held_where_possible('read-only')"),
    ("codesearch/scorers.py", "person", "'read-only'"),
    ("codesearch/workers.py", "own", "held_where_possible('read-only')"),
    ("cli/offline/sandbox.py", "person", "profile"),
    ("tui/composer/outside.py", "own", "'none'"),  # it speaks to the desktop
    ("tui/composer/outside.py", "person", "'none'"),
    ("services/hooks/run.py", "person", "hook.sandbox"),
    ("services/jobs/user_commands.py", "person", "'none'"),
    ("services/jobs/service.py", "project", "spec.profile"),
    ("services/speech/service.py", "own", "'none'"),  # it speaks to the sound server of the desktop
    ("services/testruns/gates.py", "project", "held.profile"),
    ("services/testruns/runners.py", "project", "held.profile"),
    ("services/testruns/runners.py", "project", "held_where_possible('read-only')"),
    ("workspace/textsearch.py", "own", "held_where_possible('read-only')"),
    ("workspace/undo/journal.py", "own", "'none'"),  # git writes the journal, which no profile opens
    ("process/isolated.py", "own", "held_where_possible('read-only')"),
    ("tools/github.py", "own", "'none'"),  # gh reads its own login, which no profile opens; it is started in /
    ("tools/diagnostics.py", "own", "held_where_possible('read-only')"),
    ("workspace/git.py", "own", "'none'"),  # it makes checkouts below the state directory, which no profile opens
    ("workspace/git.py", "own", "held_where_possible('read-only')"),
    ("mcp/link.py", "False", "NONE"),  # our own broker, which starts servers and holds each to its profile
    ("mcp/broker/programs.py", "person", "spec.profile"),
    ("rlm/process.py", "False", "ISOLATED if confined else NONE"),  # unconfined only where a person agreed
}
# Where the way to our own interpreter is written down; nobody else names it to start it.
INTERPRETER = {"process/itself.py", "process/sandbox/landlock.py", "app/doctor.py"}


def assigned(node: ast.AST) -> list[tuple[str, str]]:
    """Names and what an assignment gives them."""
    if not isinstance(node, ast.Assign):
        return []
    names, values = node.targets[0], node.value
    if isinstance(names, ast.Tuple) and isinstance(values, ast.Tuple):
        return [(ast.unparse(name), ast.unparse(value)) for name, value in zip(names.elts, values.elts, strict=True)]
    return [(ast.unparse(names), ast.unparse(values))]


def launches() -> set[tuple[str, str, str]]:
    """Every call of Launch: its file, whether it is the harness's own, and the profile that it names."""
    found = set()
    for source in sources():
        profiles = dict(pair for node in nodes(source.path) for pair in assigned(node))
        for node in nodes(source.path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Launch":
                given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                profile = given.get("profile", ast.unparse(node.args[2]) if len(node.args) > 2 else "MISSING")
                said = profiles.get(profile, profile) if "held_where" in profiles.get(profile, "") else profile
                file = source.path.removeprefix("src/codewhale/")
                found.add((file, given.get("own", "False"), said.removeprefix("await ")))
    return found


def test_each_place_that_starts_a_program_says_how_it_is_held() -> None:
    table = {(file, str(whose == "own"), profile) for file, whose, profile in LAUNCHES}
    assert launches() == table


# All that -I does but for one: the order of sets in a kernel is set by its environment, and alike in each.
KERNEL = ("src/codewhale/rlm/process.py", ["'-s'", "'-P'", "'-S'"])


def test_our_own_interpreter_is_started_in_one_way() -> None:
    named = {
        source.path.removeprefix("src/codewhale/")
        for source in sources()
        for node in nodes(source.path)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"
    }
    assert named <= INTERPRETER
    flags = [
        source.path
        for source in sources()
        for node in nodes(source.path)
        if isinstance(node, ast.Tuple)
        and node.elts
        and ast.unparse(node.elts[0]) in ("sys.executable", "interpreter()", "os.path.realpath(sys.executable)")
        and [ast.unparse(word) for word in node.elts[1:3]] != ["'-I'", "'-S'"]
        and (source.path, [ast.unparse(word) for word in node.elts[1:4]]) != KERNEL
    ]
    assert flags == []


def test_programs_of_the_harness_are_looked_for_outside_of_the_workspace() -> None:
    calls = [
        (source.path, node)
        for source in sources()
        for node in nodes(source.path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "find_program"
    ]
    assert calls and all(len(node.args) >= 2 for _, node in calls), [path for path, node in calls if len(node.args) < 2]
