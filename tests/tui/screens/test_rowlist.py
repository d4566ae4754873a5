"""The rows: drawn in columns, in groups, with a cursor that is always seen."""

import pytest

from codewhale.tui.rows import Item, RowList, ranked, unranked
from support.tuirecord import hosted, screen_text, until

WIDE = [
    Item("1", "港口起重机" * 20, "修理" * 30, "甲", "›", "accent"),
    Item("2", "👍🏽 crane", "e\u0301tat", "甲"),
    Item("3", "שלום עולם", "right to left", "乙"),
]


@pytest.mark.parametrize("size", [(80, 24), (30, 8), (12, 4)])
async def test_wide_characters_stay_in_their_columns(size: tuple[int, int]) -> None:
    async with hosted(RowList, size) as (host, pilot):
        host.panel.show(unranked(WIDE))
        await until(pilot, lambda: "甲" in screen_text(host))
        host.panel.move(1)
        await pilot.pause()
        strips = [host.panel.render_line(y) for y in range(size[1])]
        assert {strip.cell_length for strip in strips} == {host.panel.size.width}


async def test_the_cursor_is_kept_in_sight_and_on_its_row() -> None:
    items = [Item(str(number), f"row {number}", group=f"group {number // 10}") for number in range(100)]
    async with hosted(RowList, (40, 10)) as (host, pilot):
        rows = host.panel
        rows.show(unranked(items))
        rows.move(-1)
        await until(pilot, lambda: "row 99" in screen_text(host))
        rows.move(1)
        await until(pilot, lambda: "group 0" in screen_text(host) and "row 0" in screen_text(host))
        rows.move(55)
        await until(pilot, lambda: "row 55" in screen_text(host))
        rows.show(unranked(items), keep="70")
        assert rows.current.key == "70"
        await until(pilot, lambda: "row 70" in screen_text(host))
        rows.move(1000)
        assert rows.current.key == "99"
        await pilot.resize_terminal(40, 5)
        await until(pilot, lambda: "row 99" in screen_text(host))
        rows.show(())
        rows.move(1)
        assert rows.current is None
        rows.repaint(host.palette)


async def test_the_row_at_the_cursor_is_told_without_colours() -> None:
    for mark, names in (("", ["› one", "  two"]), ("*", ["› * one", "    two"])):
        async with hosted(RowList, (40, 10)) as (host, pilot):
            host.panel.show(unranked([Item("a", "one", mark=mark), Item("b", "two")]))
            await until(pilot, lambda: "two" in screen_text(host))
            assert [line.rstrip() for line in screen_text(host).splitlines()[:2]] == names
            host.panel.move(1)
            await until(pilot, lambda: screen_text(host).splitlines()[1].startswith("› "))
            assert "›" not in screen_text(host).splitlines()[0]


@pytest.mark.parametrize("size", [(80, 24), (40, 8), (24, 8)])
async def test_what_is_cut_is_known_so_that_it_can_be_read_elsewhere(size: tuple[int, int]) -> None:
    names = ["short", "a name of some thirty letters.", "name " * 15]
    items = [Item(f"{at}{more}", name, "a sentence " * more) for at, name in enumerate(names) for more in (0, 1, 6)]
    async with hosted(RowList, size) as (host, pilot):
        host.panel.show(unranked(items))
        await until(pilot, lambda: "short" in screen_text(host))
        for item in items:
            host.panel.show(unranked(items), keep=item.key)
            await pilot.pause()
            row = next(line for line in screen_text(host).splitlines() if line.startswith("› "))
            texts = [item.label, item.detail] if item.detail else [item.label]
            assert host.panel.cut(item) == [" ".join(text.split()) for text in texts if text.strip() not in row]


async def test_a_row_is_taken_by_the_mouse_where_it_is_caught() -> None:
    async with hosted(RowList, (40, 10)) as (host, pilot):
        host.panel.show(unranked([Item("a", "one", group="g"), Item("b", "two", group="g")]))
        await until(pilot, lambda: "two" in screen_text(host))
        await pilot.click(RowList, offset=(3, 2))
        await until(pilot, lambda: any(isinstance(said, RowList.Taken) for said in host.said))
        assert next(said.item.key for said in host.said if isinstance(said, RowList.Taken)) == "b"
        await pilot.click(RowList, offset=(3, 0))


def test_letters_in_the_label_are_found_in_what_is_shown() -> None:
    (match,) = ranked([Item("a", "x\x1b[2J  crane", "detail", more="hidden")], "crane hidden detail")
    assert "".join(match.label[place] for place in match.places) == "crane"
    assert ranked([Item("a", "crane")], "crone") == []
