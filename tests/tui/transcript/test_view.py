"""The transcript on a screen: events in, rows out; moved about in, folded and left by key."""

from typing import Any

from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, Event, TextStreamed, is_durable
from codewhale.tui.transcript.view import Transcript
from support.transcripts import ANSWER, answered, asked, begun, finished, said, whole_session
from support.transcriptview import settled, shown
from support.tuirecord import BEGAN, SESSION, PanelHost, envelopes, hosted, screen_text, until


def rows_of(host: PanelHost) -> list[str]:
    """The rows of the screen without the scroll bar and the mark of the chosen block."""
    return [row[1:].rstrip("│┃").rstrip() for row in screen_text(host).splitlines()]


def turns(count: int) -> list[Event]:
    events: list[Event] = []
    for turn in range(1, count + 1):
        events += [*begun(turn, f"question {turn}"), answered(said(f"answer {turn}\n\n" + ANSWER)), finished(turn)]
    return events


async def test_a_session_is_shown_to_its_end() -> None:
    async with shown(*whole_session()) as (_, host, _):
        text = screen_text(host)
    assert "changed since the tests passed" in text and "ls" in text


async def test_a_record_gives_the_screen_that_was_live() -> None:
    record = envelopes(whole_session())
    durable = [envelope.event for envelope in record if is_durable(envelope.event)]
    async with shown(*whole_session()) as (view, host, pilot):
        view.action_fold_all()
        view.go_to(5)
        await pilot.pause()
        live = screen_text(host)
    async with shown(*durable) as (view, host, pilot):
        view.action_fold_all()
        view.go_to(5)
        await pilot.pause()
        assert screen_text(host) == live


async def test_words_are_seen_while_they_stream() -> None:
    async with shown(*begun()) as (view, host, pilot):
        for at in range(0, len(ANSWER), 5):
            view.take(Envelope(3, SESSION, BEGAN, TextStreamed(ANSWER[at : at + 5])))
        await until(pilot, lambda: "file │ lines" in screen_text(host))
        before = screen_text(host)
        view.take(Envelope(4, SESSION, BEGAN, answered(said(ANSWER))))
        await until(pilot, lambda: len(view.source.model.live) == 0)
        await pilot.pause()
        assert screen_text(host) == before


async def test_events_of_another_session_are_not_taken() -> None:
    async with shown(*begun()) as (view, host, pilot):
        view.take(Envelope(9, "another", BEGAN, asked("not mine")))
        await settled(view, pilot)
        assert "not mine" not in screen_text(host)
        view.begin("another")
        await settled(view, pilot)
        assert screen_text(host).strip() == ""


async def test_new_lines_are_told_of_and_do_not_move_what_is_read() -> None:
    async with shown(*turns(6)) as (view, host, pilot):
        view.action_page_up()
        await pilot.pause()
        before = rows_of(host)[:-1]
        for envelope in envelopes(turns(1)):
            view.take(envelope)
        await until(pilot, lambda: "new lines" in screen_text(host))
        assert rows_of(host)[:-1] == before
        view.action_bottom()
        await pilot.pause()
        assert "new lines" not in screen_text(host)


async def test_turns_are_gone_through() -> None:
    async with shown(*turns(5)) as (view, host, pilot):
        seen = []
        for _ in range(3):
            view.action_turn_up()
            await pilot.pause()
            seen.append(next(row.strip(" │┃") for row in screen_text(host).splitlines() if row.startswith(" ┃")))
        assert seen == ["question 5", "question 4", "question 3"] or seen == ["question 4", "question 3", "question 2"]
        view.action_turn_down()
        await pilot.pause()
        assert "question" in screen_text(host).splitlines()[1]
        view.action_top()
        assert view.top == 0
        for _ in range(9):
            view.action_turn_down()
        assert view.follow


async def test_blocks_are_chosen_and_folded_by_key() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.focus()
        await until(pilot, lambda: "▌" in screen_text(host))
        assert view.chosen == len(view.source) - 1
        await pilot.press("home")
        assert view.cursor == 0 and "▌" in screen_text(host)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert "I should look first." in screen_text(host)
        await pilot.press("enter")
        await pilot.pause()
        assert "I should look first." not in screen_text(host)
        await pilot.press("up")
        assert view.cursor == 1
        await pilot.press("end")
        assert view.cursor == len(view.source) - 1


async def test_everything_is_unfolded_at_once() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.action_fold_all()
        view.action_top()
        await pilot.pause()
        assert "I should look first." in screen_text(host)


async def test_escape_gives_the_keys_back() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.focus()
        await pilot.press("up", "escape")
        await until(pilot, lambda: any(isinstance(message, Transcript.Left) for message in host.said))
        assert view.cursor == -1


async def test_a_line_can_be_told() -> None:
    async with shown() as (view, host, pilot):
        view.tell("No session could be opened.", "The folder is [gone].")
        await until(pilot, lambda: "The folder is [gone]." in screen_text(host))


async def test_other_colours_give_the_same_text() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        before = screen_text(host)
        view.repaint(host.palette)
        await settled(view, pilot)
        assert screen_text(host) == before


async def test_a_storm_of_sizes_leaves_it_whole() -> None:
    async with shown(*whole_session(), size=(80, 24)) as (view, host, pilot):
        before = rows_of(host)
        for size in ((20, 6), (200, 60), (41, 9), (12, 3), (80, 24)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda width=size[0]: max(map(len, screen_text(host).splitlines())) <= width)  # type: ignore[misc]
        await until(pilot, lambda: rows_of(host) == before)
        assert view.follow


async def test_hostile_words_are_text() -> None:
    bad = "\x1b]52;c;aGk=\x07 \x1b[2J [bold]b[/bold] [@click=app.quit]q[/] [safe](file:///etc/passwd) \u202e"
    events: list[Any] = [*begun(1, bad), TextStreamed("\x1b"), TextStreamed("[2J"), answered(said(bad)), finished()]
    async with shown(*events) as (view, host, _):
        strips = [segment for row in view.render_lines(view.size.region) for segment in row]
        text = screen_text(host)
    assert "[safe](file:///etc/passwd)" in text and "[@click=app.quit]q[/]" in text
    assert not any(segment.control for segment in strips)
    drawn = "".join(segment.text for segment in strips)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "\u202e" for char in drawn)


async def test_ten_thousand_messages_are_taken_in_between_frames() -> None:
    events: list[Event] = [asked(f"message {number}") for number in range(10_000)]
    async with hosted(lambda palette: Transcript(Words("en"), palette)) as (host, pilot):
        view = host.panel
        assert isinstance(view, Transcript)
        view.begin(SESSION)
        for envelope in envelopes(events):
            view.take(envelope)
        await until(pilot, lambda: "message 9999" in screen_text(host))
        assert len(view.source) == 10_000
        for number in (0, 1, 4_999, 9_998, 9_999):
            assert f"message {number}" in "".join(line.text for line in view.source.lines(number, 76))


async def test_heights_are_those_of_the_lines() -> None:
    async with shown(*whole_session(), *turns(3)) as (view, _, _):
        for opened in (False, True):
            view.source.open_all(opened)
            view.changed_all()
            view.action_top()
            while not view.follow:
                view.move(5)
            lines = [len(view.source.lines(index, view.size.width - 2)) for index in range(len(view.source))]
            assert [view.heights.height(index) for index in range(len(view.source))] == lines
            assert view.heights.total == sum(lines)


async def test_a_click_chooses_and_folds() -> None:
    async with shown(*whole_session()) as (view, host, pilot):
        view.action_top()
        await pilot.pause()
        row = next(at for at, text in enumerate(rows_of(host)) if "Thought" in text)
        await pilot.click(offset=(5, row))
        assert view.cursor == view.seen[row][0]
        await pilot.click(offset=(5, row))
        await until(pilot, lambda: "I should look first." in screen_text(host))
