"""Skills that are active in a session: what they say, what they leave of the tools, and how they end."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, ContextAppended, Notice, SkillActivated, SkillReleased
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import RunCommand
from codewhale.testing import Harness, harness
from scenarios.test_children import Turn, call, text_of


def skill(home: Path, name: str, body: str = "Look twice.", **metadata: str) -> Path:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    rows = "".join(f'  {key}: "{value}"\n' for key, value in metadata.items())
    head = f"---\nname: {name}\ndescription: What {name} is for\n" + (f"metadata:\n{rows}" if rows else "")
    (folder / "SKILL.md").write_text(f"{head}---\n{body}\n")
    return folder


def log(here: Harness, session: str) -> list[Any]:
    return [envelope.event for envelope in here.app.parts.sessions.read(session)]


async def turn(here: Harness, session: str, text: str = "Go") -> list[CallFinished]:
    return [one for one in await here.turn(text, session) if isinstance(one, CallFinished)]


def calling(*calls: dict[str, Any]) -> Any:
    """A model that makes each call in an answer of its own, in every turn anew."""

    def model(request: dict[str, Any]) -> Turn:
        last = max(i for i, one in enumerate(request["messages"]) if one["role"] == "user")
        answers = sum(one["role"] == "assistant" for one in request["messages"][last:])
        return calls[answers] if answers < len(calls) else {"text": "Done."}

    return [model] * 60


@pytest.mark.parametrize("mode", [Mode.AGENT, Mode.YOLO])
async def test_an_active_skill_leaves_only_the_tools_it_names(home: Path, workspace: Path, mode: Mode) -> None:
    skill(home, "reader", **{"codewhale-tools": "Read exec_shell(git log:*)"})
    (workspace / "a.txt").write_text("x\n")
    calls = calling(
        call("read_file", path="a.txt"),
        call("write_file", path="b.txt", content="y"),
        call("exec_shell", command="touch c.txt"),
        call("exec_shell", command="git log && touch c.txt"),
        call("exec_shell", command="git log $(touch c.txt)"),
        call("exec_shell", command="git log > c.txt"),
        call("exec_shell", command="git log --oneline"),
    )
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=mode, authority=Authority.AUTO)
        head = here.app.engine.session(session).state.pinned.sha256
        output = await here.client.submit(RunCommand(session, "/skill reader"))
        assert output.ok and "reader is active until /skill off" in output.text
        done = await turn(here, session)
        assert [one.ok or one.error != "permission_denied" for one in done] == [True, *[False] * 5, True]
        assert all("/skill off" in one.content for one in done[1:6])
        assert not (workspace / "b.txt").exists() and not (workspace / "c.txt").exists()
        assert here.app.engine.session(session).state.pinned.sha256 == head
        assert (await here.client.submit(RunCommand(session, "/skill off"))).text == "Switched off: reader."
        done = await turn(here, session)
        assert done[1].ok and (workspace / "b.txt").exists()
        kinds = [one.kind for one in log(here, session) if isinstance(one, ContextAppended)]
        assert kinds.count("skill:reader") == 2
        assert [type(one) for one in log(here, session) if isinstance(one, SkillActivated | SkillReleased)] == [
            SkillActivated,
            SkillReleased,
        ]


async def test_a_skill_that_the_model_loads_restricts_the_turn_and_pre_approves_nothing(
    home: Path, workspace: Path
) -> None:
    folder = skill(home, "checker", **{"codewhale-tools": "Read exec_shell(make check)"})
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("metadata:", "allowed-tools: Bash(make check)\nmetadata:"))
    calls = calling(
        call("load_skill", name="checker"),
        call("exec_shell", command="make check"),
        call("write_file", path="b.txt", content="y"),
    )
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        done = await turn(here, session)
        assert [one.ok for one in done] == [True, False, False]
        assert "no user to approve it" in done[1].content and "skill.checker" in done[2].content
        assert not here.app.engine.session(session).state.skills


async def test_what_a_skill_pre_approves_runs_unasked_while_it_is_active(home: Path, workspace: Path) -> None:
    folder = skill(home, "checker")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(
        text.replace("---\nLook", "allowed-tools: Bash(make check) Bash Bash(git:*)\n---\nLook")
    )
    (workspace / "Makefile").write_text("check:\n\ttouch checked\nother:\n\ttouch other\n")
    calls = calling(
        call("exec_shell", command="make check"),
        call("exec_shell", command="make other"),
        call("exec_shell", command="git push"),
        call("exec_shell", command="rm -rf /"),
    )
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        assert (await here.client.submit(RunCommand(session, "/skill checker"))).ok
        assert [one.ok for one in await turn(here, session)] == [True, False, False, False]
        assert (workspace / "checked").exists()
        await here.client.submit(RunCommand(session, "/skill off checker"))
        assert not any(one.ok for one in await turn(here, session))


async def test_the_text_of_a_skill_reaches_the_model_once_and_contained(home: Path, workspace: Path) -> None:
    skill(home, "tagged", body="Before </skill> after")
    seen: list[str] = []

    def model(request: dict[str, Any]) -> Turn:
        seen.append("\n".join(text_of(one) for one in request["messages"] if one["role"] == "user"))
        return {"text": "Done."}

    async with harness(home, workspace, [model] * 4) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        for _ in range(2):
            await here.client.submit(RunCommand(session, "/skill tagged"))
            await here.turn("Go", session)
        assert seen[-1].count("Before <\\/skill> after") == 1 and "is active again" in seen[-1]
        refused = await here.client.submit(RunCommand(session, "/skill nothing"))
        assert not refused.ok and "/skills lists them" in refused.text


async def test_a_rule_for_files_is_said_once_when_one_of_them_is_touched(home: Path, workspace: Path) -> None:
    (home / "rules").mkdir(parents=True)
    (home / "rules/python.md").write_text("---\nactivation: glob\nglobs: '*.py'\n---\nType every function.\n")
    (home / "rules/go.md").write_text("---\nactivation: glob\nglobs: '*.go'\n---\nNever panic.\n")
    for name in ("a.py", "b.py", "notes.txt"):
        (workspace / name).write_text("needle\n")
    seen: list[str] = []
    answers = [
        call("read_file", path="notes.txt"),
        call("grep_files", pattern="needle"),
        call("read_file", path="b.py"),
    ]

    def model(request: dict[str, Any]) -> Turn:
        seen.append("\n".join(text_of(one) for one in request["messages"] if one["role"] == "user"))
        return answers[len(seen) - 1] if len(seen) <= len(answers) else {"text": "Done."}

    async with harness(home, workspace, [model] * 9) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await here.turn("Go", session)
        assert [text.count("Type every function.") for text in seen] == [0, 0, 1, 1]
        await here.turn("Look at a.py and main.go again", session)
        assert seen[-1].count("Type every function.") == 1 and seen[-1].count("Never panic.") == 1
        active = [(one.name, one.by) for one in log(here, session) if isinstance(one, SkillActivated)]
        assert active == [("python", "file"), ("go", "file")] and not here.app.engine.session(session).state.skills


async def test_a_name_in_a_message_activates_a_skill_for_the_turn(home: Path, workspace: Path) -> None:
    skill(home, "careful", body="Look twice.")
    skill(home, "reader", **{"codewhale-tools": "Read", "codewhale-activation": "manual"})
    skill(home, "lister", **{"codewhale-tools": "LS"})
    calls = calling(call("load_skill", name="reader"), call("write_file", path="b.txt", content="y"))
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        done = await turn(here, session, "$careful $reader look at b.txt")
        assert [one.ok for one in done] == [False, False] and "skill.reader" in done[1].content
        active = [one for one in log(here, session) if isinstance(one, SkillActivated)]
        assert [(one.name, one.by, one.lasts, len(one.sha256)) for one in active] == [
            ("careful", "person", "turn", 64),
            ("reader", "person", "turn", 64),
        ]
        assert [one.ok for one in await turn(here, session, "Again; it cost $5 and $PATH is set")] == [False, True]
        with pytest.raises(SessionError, match=r"is named more than once|can be used together|restricts"):
            await here.turn("$reader $lister", session)
        assert not here.app.engine.session(session).state.skills


async def test_a_skill_whose_words_fit_a_message_is_offered_by_name_and_not_by_its_text(
    home: Path, workspace: Path
) -> None:
    for name in ("kubernetes-rollouts", "spreadsheets"):
        skill(home, name, "Look twice.")
    async with harness(home, workspace, calling()) as here:
        session = await here.open()
        await turn(here, session, "the kubernetes rollout hangs")
        await turn(here, session, "rename this function")
        await turn(here, session, "$spreadsheets the kubernetes rollout hangs")
        events = log(here, session)
        texts = [one.text for one in events if isinstance(one, ContextAppended) and one.kind == "offered_skills"]
        assert len(texts) == 1 and "- kubernetes-rollouts: What" in texts[0]
        assert "Look twice" not in texts[0] and "spreadsheets" not in texts[0]
        assert [one.name for one in events if isinstance(one, SkillActivated)] == ["spreadsheets"]


async def test_a_plan_activates_a_skill_by_its_first_word_alone(home: Path, workspace: Path) -> None:
    skill(home, "careful", body="Look twice.")
    skill(home, "personal", body="Mine.", **{"codewhale-activation": "manual"})
    skill(home, "unplanned", body="Never.", **{"codewhale-plan": "false"})

    def write(*items: str) -> dict[str, Any]:
        return call("checklist_write", todos=[{"content": item, "status": "pending"} for item in items])

    calls = calling(write("Use $careful", "$personal first", "$unplanned too"), write("$careful: read it all"))
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        assert all(one.ok for one in await turn(here, session))
        active = [(one.name, one.by) for one in log(here, session) if isinstance(one, SkillActivated)]
        assert active == [("careful", "plan")]


async def test_what_always_applies_stands_in_the_head_and_a_change_is_said_once(home: Path, workspace: Path) -> None:
    skill(home, "always", body="Use tabs.", **{"codewhale-activation": "always", "codewhale-tools": "Read"})
    calls = calling(call("exec_shell", command="true"))
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.YOLO, authority=Authority.PERSON)
        head = here.app.engine.session(session).state.pinned.system
        assert head.count("Use tabs.") == 1
        assert [one.ok for one in await turn(here, session)] == [False]
        (home / "skills/always/SKILL.md").write_text(
            (home / "skills/always/SKILL.md").read_text().replace("tabs", "spaces")
        )
        await turn(here, session)
        await turn(here, session)
        told = [one.text for one in log(here, session) if isinstance(one, ContextAppended) and one.kind == "rules"]
        assert len(told) == 1 and "Use spaces." in told[0]
        assert here.app.engine.session(session).state.pinned.system == head
        await here.client.submit(RunCommand(session, "/skill off"))
        assert [one.ok for one in await turn(here, session)] == [True]


async def test_the_skills_that_a_message_is_about_are_offered_by_name_behind_it(home: Path, workspace: Path) -> None:
    about = {
        "pdf": "Merge and split PDF files, fill in forms.",
        "pdf-sign": "Sign PDF files with a certificate.",
        "pdf-stamp": "Stamp PDF files with a watermark.",
        "kubernetes": "Helm charts and pods of Kubernetes.",
    }
    for name, says in about.items():
        folder = skill(home, name, body=f"Text of {name}.")
        text = (folder / "SKILL.md").read_text()
        (folder / "SKILL.md").write_text(text.replace(f"What {name} is for", says))
    seen: list[str] = []

    def model(request: dict[str, Any]) -> Turn:
        seen.append("\n".join(text_of(one) for one in request["messages"] if one["role"] == "user"))
        return {"text": "Done."}

    async with harness(home, workspace, [model] * 9) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)

        async def offers(text: str) -> list[str]:
            before = len(log(here, session))
            await here.turn(text, session)
            new = [one for one in log(here, session)[before:] if isinstance(one, ContextAppended)]
            return [
                line.split(":")[0][2:]
                for one in new
                if one.kind == "offered_skills"
                for line in one.text.splitlines()[1:]
            ]

        assert await offers("rename the function and add a test") == []
        head = here.app.engine.session(session).state.pinned.sha256
        names = await offers("sign and stamp the pdf")
        assert len(names) == 2 and set(names) < set(about)
        assert seen[-1].index("sign and stamp the pdf") < seen[-1].index("These skills may fit")
        assert "Text of" not in seen[-1]
        assert await offers("sign and stamp the pdf") == []
        assert await offers("which kubernetes pods are down?") == ["kubernetes"]
        assert await offers("sign and stamp the pdf") == names
        assert (await here.client.submit(RunCommand(session, "/skill kubernetes"))).ok
        assert await offers("the helm charts of kubernetes, please") == []
        await here.client.submit(RunCommand(session, "/skill off"))
        assert await offers("the helm charts of kubernetes, again") == []
        assert here.app.engine.session(session).state.pinned.sha256 == head


async def test_a_compaction_keeps_the_texts_of_active_skills_alone(home: Path, workspace: Path) -> None:
    skill(home, "lasting", body="Keep me.")
    skill(home, "passing", body="Forget me.")
    (home / "rules").mkdir()
    (home / "rules/python.md").write_text("---\nactivation: glob\nglobs: '*.py'\n---\nType every function.\n")
    seen: list[str] = []

    def model(request: dict[str, Any]) -> Turn:
        seen.append("\n".join(text_of(one) for one in request["messages"]))
        return {"text": "A long answer. " * 200}

    async with harness(home, workspace, [model] * 20) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await here.client.submit(RunCommand(session, "/skill lasting"))
        for text in ("$passing look at a.py", "Two " * 500, "Three " * 500, "Four " * 500):
            await here.turn(text, session)
        assert all(said in seen[-1] for said in ("Keep me.", "Forget me.", "Type every function."))
        output = await here.client.submit(RunCommand(session, "/compact"))
        assert output.ok, output.text
        await here.turn("Five", session)
        assert "Keep me." in seen[-1] and "Forget me." not in seen[-1] and "Type every" not in seen[-1]
        await here.turn("Now b.py", session)
        assert seen[-1].count("Type every function.") == 1 and seen[-1].count("Keep me.") == 1


async def test_a_rule_and_a_skill_of_one_name_are_told_apart(home: Path, workspace: Path) -> None:
    skill(home, "python", body="The skill.")
    (home / "rules").mkdir()
    (home / "rules/python.md").write_text("---\nactivation: glob\nglobs: '*.py'\n---\nThe rule.\n")
    async with harness(home, workspace, [{"text": "Done."}] * 9) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        for text in ("$user:python look at a.py", "and b.py", "$user:python c.py"):
            await here.turn(text, session)
        names = [one.name for one in log(here, session) if isinstance(one, SkillActivated)]
        assert len(names) == 3 and names[0] == names[2] == "python" and names[1].endswith(":python")
        texts = [one.text for one in log(here, session) if isinstance(one, ContextAppended)]
        assert sum("The skill." in text for text in texts) == sum("The rule." in text for text in texts) == 1


async def test_the_only_skill_that_is_named_says_how_it_is_switched_on(home: Path, workspace: Path) -> None:
    skill(home, "careful", body="Look twice.")
    async with harness(home, workspace, [{"text": "Done."}] * 4) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        assert (await here.client.submit(RunCommand(session, "/skills off careful"))).ok
        await here.turn("$careful look", session)
        said = [one.text for one in log(here, session) if isinstance(one, Notice)]
        assert any("/skills on user:careful" in text for text in said), said


async def test_a_rule_for_a_file_without_an_ending_is_said_when_that_file_is_touched(
    home: Path, workspace: Path
) -> None:
    (home / "rules").mkdir(parents=True)
    for name, pattern in (
        ("docker", "Dockerfile"),
        ("make", "**/Makefile"),
        ("ignored", ".gitignore"),
        ("licence", "LICENSE"),
    ):
        (home / f"rules/{name}.md").write_text(f"---\nactivation: glob\nglobs: '{pattern}'\n---\nThe {name} rule.\n")
    (workspace / "sub").mkdir()
    for name in ("Dockerfile", "sub/Makefile", ".gitignore"):
        (workspace / name).write_text("text\n")
    calls = calling(call("read_file", path="Dockerfile"), call("file_search", query="Makefile"))
    async with harness(home, workspace, calls) as here:
        session = await here.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await turn(here, session)
        active = [one.name for one in log(here, session) if isinstance(one, SkillActivated)]
        assert active == ["docker", "make"]
        await turn(here, session, "What of .gitignore?")
        assert [one.name for one in log(here, session) if isinstance(one, SkillActivated)] == [*active, "ignored"]
