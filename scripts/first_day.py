"""`make first-day`: what a person does on a first day, each task done in the real program in tmux over a scripted
endpoint on this machine: how many keys beside what is typed as text, how many approvals, and whether what should be
there in the end is there. Writes the table of docs/first-day.md with --write. Exit 1 when a task is not done or is
above its bound.

python scripts/first_day.py [TASK]... [--write]
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from policy_server import Policy, PolicyServer, Turn  # noqa: E402
from tmux_pane import Pane  # noqa: E402

from codewhale.lib.clock import SystemClock  # noqa: E402
from codewhale.protocol.errors import SessionError  # noqa: E402
from codewhale.protocol.events import ApprovalAnswered, Event  # noqa: E402
from codewhale.session.store import SessionStore  # noqa: E402
from support.terminal import environment  # noqa: E402

CODEWHALE = str(Path(sys.executable).parent / "codewhale")
SIZE = (110, 36)
BASKET = """def total(prices, discount=0):
    full = sum(prices)
    return (full * (100 + discount) + 50) // 100
"""
TEST = """import unittest

from basket import total


class Discount(unittest.TestCase):
    def test_discount(self):
        self.assertEqual(total([1000], 20), 800)
"""
RUN_TESTS = "python3 -m unittest -v"


class Person:
    """Somebody before the screen: types text, presses keys, reads. Keys are counted, text is not."""

    def __init__(self, folder: Path, url: str) -> None:
        self.home, self.work, self.url = folder / "home", folder / "work", url
        self.keys = 0
        self._folder = folder
        self._pane: Pane | None = None
        self.home.mkdir(mode=0o700)
        self.work.mkdir()
        (self.work / "basket.py").write_text(BASKET)
        (self.work / "test_basket.py").write_text(TEST)
        who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
            self.git(*who, *words)
        (self.home / "config.toml").write_text(
            f'provider = "local"\nmodel = "m"\n[tui]\nnotify = "off"\n'
            f'[providers.local]\nbase_url = "{url}"\ncontext_window = 64000\n'
        )

    def git(self, *words: str) -> str:
        """git in the workspace."""
        return subprocess.run(
            ["git", *words], cwd=self.work, env=environment(self.home), check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    @property
    def pane(self) -> Pane:
        """The program's terminal. Raises ValueError before it was opened."""
        if self._pane is None:
            raise ValueError("nothing was opened")
        return self._pane

    def open(self, *words: str, ready: str = "local/m", **environ: str) -> None:
        """Start the program as a command line would; it ends with the former one."""
        self.close()
        env = environment(self.home, **environ)
        self._pane = Pane(self._folder, SIZE, env, [CODEWHALE, *words])
        self.sees(ready)

    def close(self) -> None:
        """Close the terminal."""
        if self._pane is not None:
            self._pane.end()
            self._pane = None

    def press(self, *keys: str) -> None:
        """Press keys; each counts."""
        for key in keys:
            self.pane.press(key)
            self.keys += 1
            time.sleep(0.3 if key == "Escape" else 0.12)  # an escape may begin a longer key for a moment

    def type(self, text: str) -> None:
        """Type text where the cursor is, as fast as it is taken; it is not counted."""
        self.pane.press("-l", text)
        time.sleep(0.25)

    def say(self, text: str) -> None:
        """Type a message and send it: one key."""
        self.type(text)
        self.press("Enter")

    def sees(self, *words: str) -> str:
        """Wait until all these words are on the screen."""
        return self.pane.until(lambda text: all(each in text for each in words))

    def answers(self, *words: str, keys: tuple[str, ...] = ("Enter",)) -> None:
        """Wait for a card with these words, until it takes answers, and press keys."""
        self.sees(*words)
        self.ready()
        self.press(*keys)

    def ready(self) -> str:
        """Wait until a card takes answers; the screen then."""
        return self.pane.until(lambda text: "↑↓ move" in text and "stop typing first" not in text)

    def choose(self, words: str) -> None:
        """Go to the row of a card that has these words, up or down, and press Enter."""
        self.sees(words)
        lines = self.ready().splitlines()
        chosen = next(at for at, line in enumerate(lines) if line.startswith("│ › "))
        wanted = next(at for at, line in enumerate(lines) if words in line and at >= chosen)
        last = next(at for at, line in enumerate(lines) if "say why" in line or "↑↓ move" in line)
        down, up = wanted - chosen, last - wanted + 1
        self.press(*(["Down"] * down if down <= up else ["Up"] * up), "Enter")

    def events(self) -> list[Event]:
        """Everything recorded in all sessions of this home."""
        store = SessionStore(str(self.home), SystemClock())
        recorded: list[Event] = []
        for summary in store.summaries():
            with suppress(SessionError):  # one that is being made
                recorded += [each.event for each in store.read(summary.id)]
        return recorded

    def approvals(self) -> int:
        """Questions whether something may run that were answered."""
        return sum(isinstance(event, ApprovalAnswered) for event in self.events())

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something outside the screen. Raises TimeoutError that says what it was."""
        deadline = time.monotonic() + 20
        while not _holds(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} never came:\n{self.pane.picture(colours=False)}")
            time.sleep(0.05)


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except FileNotFoundError:
        return False


class Task(NamedTuple):
    """A task, the keys and approvals that it may take, and how it is done: what the model plays and what one does."""

    name: str
    keys: int
    approvals: int
    play: Callable[[], Policy]
    does: Callable[[Person], None]


def talk(*turns: Turn) -> Callable[[], Policy]:
    """A model that says one turn after the other."""

    def play() -> Policy:
        for turn in turns:  # a tuple does not take what is sent
            _ = yield turn

    return play


READ = Turn("", (("read_file", {"path": "basket.py"}),))
FIX = Turn(
    "The discount is added.",
    (("edit_file", {"path": "basket.py", "search": "100 + discount", "replace": "100 - discount"}),),
)
TESTED = Turn("", (("exec_shell", {"command": RUN_TESTS}),))
ONCE = ("Enter",)


def shell(command: str, **more: object) -> Turn:
    """A call of a command."""
    return Turn("", (("exec_shell", {"command": command, **more}),))


def asks_about_code(person: Person) -> None:
    person.open()
    person.say("How is a discount applied?")
    person.sees("percent of the sum")


def fixes_a_test(person: Person) -> None:
    person.open()
    person.say("test_discount fails. Fix it.")
    person.answers("Run this command?")
    person.sees("It passes now")
    assert "100 - discount" in (person.work / "basket.py").read_text()


def undoes_it(person: Person) -> None:
    person.open()
    person.say("Fix it.")
    person.sees("Fixed.")
    person.say("/undo")
    person.sees("ctrl+y undo")
    person.press("C-y")
    person.until(lambda: (person.work / "basket.py").read_text() == BASKET, "the file as it was")


def continues_yesterday(person: Person) -> None:
    subprocess.run(
        [CODEWHALE, "exec", "Remember the word walrus."],
        cwd=person.work, env=environment(person.home), check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    person.open()
    person.sees("walrus")
    person.press("Enter")
    person.sees("I will.")


def queues_a_message(person: Person) -> None:
    person.open()
    person.say("Count slowly.")
    person.sees("esc to stop")
    person.say("Then say goodbye.")
    person.sees("Goodbye.")


def stops_a_command(person: Person) -> None:
    person.open()
    person.say("Wait long.")
    person.sees("sleep 120", "esc to stop")
    person.press("Escape")
    person.sees("you stopped it")


def runs_a_line(person: Person) -> None:
    person.open()
    person.say("!ls")
    person.sees("test_basket.py")


def mentions_a_file(person: Person) -> None:
    person.open()
    person.type("What is in @bask")
    person.sees("basket.py")
    person.press("Tab", "Enter")
    person.sees("A sum.")


def looks_at_the_window(person: Person) -> None:
    person.open()
    person.say("/context")
    person.sees("Free", "Conversation")


def connects_a_server(person: Person) -> None:
    (person.home / "config.toml").write_text('[tui]\nnotify = "off"\n')
    person.open(ready="address")
    person.type(person.url)
    person.press("Enter")
    person.sees("m-large")
    person.press("Enter")
    person.sees("Ask anything")
    person.say("Hello.")
    person.sees("I am here.")


def allows_the_tests_for_good(person: Person) -> None:
    (person.work / "basket.py").write_text(BASKET.replace("+ discount", "- discount"))
    person.open()
    person.say("Run the tests.")
    person.sees("Run this command?", "test command")
    person.choose("test command")
    person.sees("Again they ran.")


def lets_the_sandbox_decide(person: Person) -> None:
    person.open()
    person.say("Make three folders.")
    person.sees("Run this command?", "sandbox holds")
    person.choose("sandbox holds")
    person.sees("f6 turns this off")
    person.press("Down", "Enter")
    person.sees("All three.")
    assert all((person.work / name).is_dir() for name in ("one", "two", "three"))


def edits_a_command(person: Person) -> None:
    person.open()
    person.say("Make a folder.")
    person.sees("Run this command?", "Edit")
    person.choose("Edit")
    person.type(" && mkdir more")
    person.press("Enter")
    person.sees("Made.")
    assert (person.work / "more").is_dir()


def refuses_with_a_reason(person: Person) -> None:
    person.open()
    person.say("Push it.")
    person.sees("Run this command?", "say why")
    person.choose("say why")
    person.type("not before Friday")
    person.press("Enter")
    person.sees("I wait until Friday.")


def goes_back_two_messages(person: Person) -> None:
    person.open()
    for words in ("First.", "Second.", "Third."):
        person.say(words)
        person.sees(f"Heard {words.lower()}")
    person.press("Escape", "Escape")
    person.sees("Go back to a message")
    person.press("Down", "Enter")
    person.sees("Conversation and files")
    person.press("Enter")
    person.sees("› Second.")


def plans_and_runs(person: Person) -> None:
    person.open("--mode", "plan")
    person.say("Plan the fix.")
    person.answers("Approve and run")
    person.sees("Fixed.")
    assert "100 - discount" in (person.work / "basket.py").read_text()


def reviews_a_diff(person: Person) -> None:
    (person.work / "basket.py").write_text(BASKET.replace("+ discount", "- discount"))
    person.open()
    person.say("/review")
    person.sees("basket.py", "rounds half")


def searches_history(person: Person) -> None:
    person.open()
    person.say("The quick brown fox.")
    person.sees("Heard.")
    person.press("C-r")
    person.type("brown")
    person.sees("The quick brown fox.")
    person.press("Enter")
    person.sees("› The quick brown fox.")


def exports_it(person: Person) -> None:
    person.open()
    person.say("Hello.")
    person.sees("Heard.")
    person.say("/export talk.md")
    person.until(lambda: "Hello." in (person.work / "talk.md").read_text(), "the exported file")


def names_it(person: Person) -> None:
    person.open()
    person.say("Hello.")
    person.sees("Heard.")
    person.say("/rename Discounts")
    person.until(lambda: "Discounts" in sessions(person), "the new title")


def sessions(person: Person) -> str:
    """The listing of sessions."""
    return subprocess.run(
        [CODEWHALE, "sessions", "list"],
        cwd=person.work, env=environment(person.home), check=True, stdout=subprocess.PIPE, text=True, timeout=60,
    ).stdout  # fmt: skip


def forks_it(person: Person) -> None:
    person.open()
    person.say("Hello.")
    person.sees("Heard.")
    person.say("/fork")
    person.sees("A copy of this session")


def changes_the_model(person: Person) -> None:
    person.open()
    person.say("/model")
    person.sees("m-large")
    person.type("large")
    person.press("Enter")
    person.sees("local/m-large")


def uses_an_own_command(person: Person) -> None:
    (person.home / "commands").mkdir()
    (person.home / "commands" / "explain.md").write_text("---\ndescription: Explain a file\n---\nExplain $ARGUMENTS.\n")
    person.open()
    person.say("/explain basket.py")
    person.sees("Explain basket.py.", "A sum.")


def reads_the_middle(person: Person) -> None:
    person.open()
    person.say("Count to ten thousand.")
    person.sees("Counted.")
    person.press("C-o")
    person.sees("esc close")
    person.press("/")
    person.type("5000")
    person.press("Enter")
    person.sees("4999", "5000", "5001")


def reads_outside(person: Person) -> None:
    (person.work.parent / "other").mkdir()
    (person.work.parent / "other" / "notes.txt").write_text("half up\n")
    person.open()
    person.say("Read the notes beside this folder.")
    person.answers("outside")
    person.sees("Half up.")


def adds_a_folder(person: Person) -> None:
    (person.work.parent / "other").mkdir()
    (person.work.parent / "other" / "notes.txt").write_text("half up\n")
    person.open()
    person.say("/add-dir ../other")
    person.say("Read the notes beside this folder.")
    person.sees("Half up.")


def starts_a_server(person: Person) -> None:
    person.open()
    person.say("Serve this folder.")
    person.answers("Run this command?", "127.0.0.1")
    person.sees("It serves.")
    person.say("!curl -s --retry 9 --retry-connrefused http://127.0.0.1:18765/")
    person.sees("basket.py</a>")


def begins_instructions(person: Person) -> None:
    person.open()
    person.say("/init")
    person.until(lambda: (person.work / "AGENTS.md").exists(), "AGENTS.md")


def leaves(person: Person) -> None:
    person.open()
    person.say("Hello.")
    person.sees("Heard.")
    person.press("C-d")
    person.sees("codewhale --resume")


OUTSIDE = Turn("", (("read_file", {"path": "../other/notes.txt"}),))
HEARD = Turn("Heard.")
MAKE = tuple(shell(f"mkdir {name}") for name in ("one", "two", "three"))
SERVE = shell("python3 -m http.server 18765 --bind 127.0.0.1", background=True, loopback=True)
PLAN = Turn("", (("update_plan", {"plan": [{"step": "Change the sign", "status": "pending"}]}),))
FINDING = {"file": "basket.py", "line": 3, "severity": "low", "title": "It rounds half up", "detail": "rounds half up"}
TASKS = (
    Task("connect a local server", 4, 0, talk(Turn("I am here.")), connects_a_server),
    Task("ask how the code works", 1, 0, talk(READ, Turn("As a percent of the sum.")), asks_about_code),
    Task("fix a failing test", 2, 1, talk(READ, FIX, TESTED, Turn("It passes now.")), fixes_a_test),
    Task(
        "allow the test command for good",
        3,
        1,
        talk(TESTED, TESTED, Turn("Again they ran.")),
        allows_the_tests_for_good,
    ),
    Task("let the sandbox decide", 5, 1, talk(*MAKE, Turn("All three.")), lets_the_sandbox_decide),
    Task("change a command before it runs", 5, 1, talk(MAKE[0], Turn("Made.")), edits_a_command),
    Task(
        "refuse with a reason",
        4,
        1,
        talk(shell("git push origin main"), Turn("I wait until Friday.")),
        refuses_with_a_reason,
    ),
    Task("take the last change back", 3, 0, talk(FIX, Turn("Fixed.")), undoes_it),
    Task(
        "go back two messages",
        8,
        0,
        talk(*(Turn(f"Heard {word}.") for word in ("first", "second", "third"))),
        goes_back_two_messages,
    ),
    Task("continue yesterday's session", 1, 0, talk(Turn("I will.")), continues_yesterday),
    Task("plan, approve and run", 2, 0, talk(PLAN, Turn("That is the plan."), FIX, Turn("Fixed.")), plans_and_runs),
    Task("review a diff", 1, 0, talk(Turn(json.dumps({"findings": [FINDING]}))), reviews_a_diff),
    Task(
        "start a server and look at it",
        3,
        1,
        talk(SERVE, Turn("It serves.")),
        starts_a_server,
    ),
    Task(
        "queue a message while it works",
        2,
        0,
        talk(shell("sleep 2"), Turn("Done."), Turn("Goodbye.")),
        queues_a_message,
    ),
    Task("stop a command", 2, 0, talk(shell("sleep 120"), Turn("Never.")), stops_a_command),
    Task("run a command of one's own", 1, 0, talk(), runs_a_line),
    Task("mention a file", 2, 0, talk(Turn("A sum.")), mentions_a_file),
    Task("read a file beside the workspace", 2, 1, talk(OUTSIDE, Turn("Half up.")), reads_outside),
    Task("work in a second folder", 2, 0, talk(OUTSIDE, Turn("Half up.")), adds_a_folder),
    Task("read the middle of a long output", 4, 0, talk(shell("seq 10000"), Turn("Counted.")), reads_the_middle),
    Task("find a former prompt", 3, 0, talk(HEARD), searches_history),
    Task("change the model", 2, 0, talk(), changes_the_model),
    Task("use a command of one's own making", 1, 0, talk(Turn("A sum.")), uses_an_own_command),
    Task("begin an instructions file", 2, 0, talk(), begins_instructions),
    Task("name a session", 2, 0, talk(HEARD), names_it),
    Task("fork a session", 2, 0, talk(HEARD), forks_it),
    Task("export a session", 2, 0, talk(HEARD), exports_it),
    Task("see what fills the window", 1, 0, talk(), looks_at_the_window),
    Task("leave and see how to come back", 2, 0, talk(HEARD), leaves),
)


@contextmanager
def day(task: Task) -> Iterator[Person]:
    """A person with a home, a repository and a model that plays the task."""
    with (
        tempfile.TemporaryDirectory(prefix="codewhale-day-", ignore_cleanup_errors=True) as name,
        PolicyServer(lambda words: task.play()) as server,
    ):
        person = Person(Path(name).resolve(), server.base_url)
        try:
            yield person
        finally:
            person.close()


def done(task: Task) -> tuple[str, int, int, float]:
    """Do a task: what went wrong or nothing, keys, approvals, seconds."""
    began = time.monotonic()
    with day(task) as person:
        try:
            task.does(person)
            wrong = ""
        except (TimeoutError, AssertionError) as error:
            wrong = f"not done: {error}"[:6000]
        person.close()
        keys, approvals = person.keys, person.approvals()
    if not wrong and (keys > task.keys or approvals > task.approvals):
        wrong = "above its bound"
    return wrong, keys, approvals, time.monotonic() - began


def main() -> int:
    """Do what is asked for, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="words of a task's name")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if shutil.which("tmux") is None:
        print("this needs tmux")
        return 2
    chosen = [task for task in TASKS if not args.tasks or any(words in task.name for words in args.tasks)]
    rows, failed = [], 0
    for task in chosen:
        wrong, keys, approvals, seconds = done(task)
        failed += bool(wrong)
        rows.append(f"| {task.name} | {keys} | {task.keys} | {approvals} | {task.approvals} |")
        print(f"{rows[-1]} {seconds:.1f} s{' ' + wrong if wrong else ''}", flush=True)
    if args.write and not failed and len(chosen) == len(TASKS):
        page = ROOT / "docs" / "first-day.md"
        before, _, rest = page.read_text().partition("<!-- table -->\n")
        after = rest.partition("<!-- end -->\n")[2]
        head = "| task | keys | at most | approvals | at most |\n|---|---:|---:|---:|---:|\n"
        page.write_text(
            f"{before}<!-- table -->\n{head}" + "".join(row + "\n" for row in rows) + f"<!-- end -->\n{after}"
        )
    print(f"{len(chosen) - failed} of {len(chosen)} done")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
