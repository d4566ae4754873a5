from codewhale.session.lists import Lists


def test_lists_are_by_session_and_kind_and_cannot_be_changed_from_outside() -> None:
    lists = Lists()
    items = [{"id": 1, "content": "a"}]
    lists.set("s", "checklist", items)
    items[0]["content"] = "changed"
    lists.get("s", "checklist")[0]["content"] = "changed"
    assert lists.get("s", "checklist") == ({"id": 1, "content": "a"},)
    assert lists.get("s", "plan") == lists.get("t", "checklist") == ()
