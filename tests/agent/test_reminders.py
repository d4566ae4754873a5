"""What a model is told whose answer is no end, each time it is told."""

from codewhale.agent.incomplete_turn import TEXT_CALL, reminder


def test_the_second_time_a_call_is_worked_out_and_the_last_time_is_said_to_be_the_last() -> None:
    call = ("read_file", '{"path":"a.py"}')
    first, second, third = (reminder(TEXT_CALL, number, call, alone=True) for number in (1, 2, 3))
    assert "Text is not run" in first and "alone" in first and "a.py" not in first
    assert '<tool_call>\n{"name":"read_file","arguments":{"path":"a.py"}}\n</tool_call>' in second
    assert "last reminder" in third and "last reminder" not in second
    native = reminder(TEXT_CALL, 2, call, alone=False)
    assert "<tool_call>" not in native and "alone" not in native and 'read_file with the arguments {"path"' in native
