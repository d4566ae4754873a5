"""Taking things out: the clipboard, the editor, the pager."""

from codewhale.tui.transcript.copying import MOST_BYTES
from codewhale.tui.transcript.pager import Pager
from codewhale.tui.transcript.view import Transcript
from support.transcripts import ANSWER, DIFF, answered, asked, begun, said, whole_session
from support.transcriptview import shown
from support.tuirecord import PanelHost, screen_text, until


def copied(host: PanelHost) -> list[tuple[str, int, bool]]:
    """What was told of copying."""
    return [
        (message.what, message.size, message.whole) for message in host.said if isinstance(message, Transcript.Copied)
    ]


async def test_the_last_answer_is_copied_from_anywhere() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.action_copy_answer()
        await until(pilot, lambda: copied(host) == [("answer", len(ANSWER), True)])
        assert host.clipboard == ANSWER


async def test_code_is_copied_one_block_after_the_other() -> None:
    async with shown(*begun(), answered(said("```\none\n```\n\n```\ntwo\n```\n"))) as (view, host, pilot):
        view.action_copy_code()
        assert host.clipboard == "two"
        view.action_copy_code()
        assert host.clipboard == "one"
        view.focus()
        await pilot.press("end", "ctrl+x", "ctrl+x")
        await until(pilot, lambda: len(copied(host)) == 4)
        assert host.clipboard == "one"


async def test_the_chosen_block_is_copied() -> None:
    async with shown(*begun(1, "my words")) as (view, host, pilot):
        view.focus()
        await pilot.press("end", "ctrl+y")
        await until(pilot, lambda: copied(host))
        assert host.clipboard == "my words"


async def test_a_copy_is_bounded_and_says_so() -> None:
    async with shown(answered(said("x" * 200_000))) as (view, host, pilot):
        view.action_copy_answer()
        await until(pilot, lambda: copied(host) == [("answer", MOST_BYTES, False)])


async def test_nothing_to_copy_is_said() -> None:
    async with shown(asked("x")) as (view, host, pilot):
        view.action_copy_answer()
        view.action_copy_code()
        await until(pilot, lambda: [size for _, size, _ in copied(host)] == [0, 0])
        assert host.clipboard == ""


async def test_files_are_opened_at_their_line() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.action_open_last()
        card = next(block for block in view.source.model.settled if getattr(block, "name", "") == "edit_file")
        view.cursor = card.id
        view.action_open()
        opened = [message for message in host.said if isinstance(message, Transcript.OpenFile)]
        await until(pilot, lambda: len([m for m in host.said if isinstance(m, Transcript.OpenFile)]) == 2)
        opened = [message for message in host.said if isinstance(message, Transcript.OpenFile)]
        assert [(message.path, message.line) for message in opened] == [("src/parse.py", 0), ("src/parse.py", 11)]
        assert opened[0].handler_name == "on_transcript_open_file"


async def test_the_pager_shows_a_call_in_full() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        card = next(block for block in view.source.model.settled if getattr(block, "name", "") == "edit_file")
        view.cursor = card.id
        view.action_pager()
        await until(pilot, lambda: isinstance(host.screen, Pager) and "return lines[0]" in screen_text(host))
        assert screen_text(host).startswith(" src/parse.py")
        await pilot.press("y")
        assert host.clipboard == DIFF
        await until(pilot, lambda: f"{len(DIFF)} characters copied" in screen_text(host))
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(host.screen, Pager))
