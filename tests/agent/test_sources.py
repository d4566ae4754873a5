"""What changes under a conversation is told once, in full, and again when it changes again."""

from collections.abc import Iterable
from pathlib import Path

from codewhale.agent.session_factory import changes, instruction_source
from codewhale.protocol.events import ContextAppended, HeaderPinned
from codewhale.protocol.ops import SendMessage
from codewhale.session.prompt import Instruction
from codewhale.session.redaction import Redactor
from support.stage import staged, until


class Skills:
    """A second source, in no head."""

    kind = "skills"
    title = "The skills"

    def __init__(self) -> None:
        self.now = ""

    def text(self, workspace: str) -> str:
        """As it stands."""
        return self.now

    def in_head(self, header: HeaderPinned, text: str) -> bool:
        """Nothing is there without being told."""
        return not text

    def version(self, text: str) -> str:
        return text


async def test_each_source_is_told_when_it_stands_otherwise_and_not_again(home: Path, workspace: Path) -> None:
    chain: list[Instruction] = []

    def load(place: str) -> Iterable[Instruction]:
        return chain

    skills = Skills()
    sources = (instruction_source(load), skills)
    redactor = Redactor({"API_TOKEN": "secret-value"})
    async with staged(home, workspace) as stage:
        session = stage.open()
        assert changes(sources, session, redactor) == ()
        chain.append(Instruction("AGENTS.md", "Use secret-value.", 10))
        skills.now = "pdf, xlsx"
        told = changes(sources, session, redactor)
        assert [update.kind for update in told] == ["instructions", "skills"]
        assert all(update.text.startswith("<context_update>\n") for update in told)
        assert (
            "[redacted API_TOKEN]" in told[0].text and "The skills changed and now read in full:\npdf" in told[1].text
        )
        session.emit(*told)
        assert changes(sources, session, redactor) == ()
        chain.clear()
        (gone,) = changes(sources, session, redactor)
        assert "no longer apply" in gone.text


async def test_updates_travel_in_the_one_message_of_the_next_words(home: Path, workspace: Path) -> None:
    async with staged(home, workspace, [{"text": "a"}, {"text": "b"}]) as stage:
        session = stage.open()
        for text in ("One", "Two"):
            await stage.engine.send(SendMessage(session.id, text))
            await until(lambda: not stage.engine.turn(session.id).busy)
            (workspace / "AGENTS.md").write_text("New rule.\n")
        events = [envelope.event for envelope in session.log.read()]
        assert sum(isinstance(event, ContextAppended) and event.kind == "instructions" for event in events) == 1
        assert stage.provider.requests[1].count(b"<context_update>") == 1
        assert stage.provider.requests[1].startswith(
            stage.provider.requests[0][: stage.provider.requests[0].rindex(b"]")]
        )
