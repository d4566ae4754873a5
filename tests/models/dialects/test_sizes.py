"""What wire messages consist of, byte for byte as they stand."""

import pytest

from codewhale.models.dialects.sizes import message_sizes

CHAT = (
    rb'{"role":"assistant","content":"a\"\u0001","reasoning_content":"hm","tool_calls":'
    rb'[{"id":"c","type":"function","function":{"name":"run","arguments":"{\"a\":1}"}}]},'
    rb'{"role":"tool","tool_call_id":"c","content":"four"},'
    rb'{"role":"user","content":[{"type":"text","text":"mine"},{"type":"image_url","image_url":{"url":"data:x"}}]}'
)
RESPONSES = (
    rb'{"type":"reasoning","id":"r","summary":[ ],"encrypted_content":"xyz"},'
    rb'{"type":"message","role":"assistant","content":"said","phase":"final"},'
    rb'{"type":"function_call","call_id":"c","name":"run","arguments":"{}"},'
    rb'{"type":"function_call_output","call_id":"c","output":"four"},'
    rb'{"type":"message","role":"user","content":[{"type":"input_text","text":"mine"},'
    rb'{"type":"input_image","image_url":"data:x","detail":"auto"}]}'
)
BLOCKS = (
    rb'{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"ab"},'
    rb'{"type":"redacted_thinking","data":"cd"},{"type":"text","text":"said"},'
    rb'{"type":"tool_use","id":"c","name":"run","input":{ "a" : 1 }}]},'
    rb'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"four","is_error":true},'
    rb'{"type":"text","text":"mine"},'
    rb'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}'
)


@pytest.mark.parametrize(
    ("wire", "sizes"),
    [
        (CHAT, {"answers": 9, "reasoning": 2, "tool calls": 3 + 9, "tool results": 4, "pictures": 6}),
        (RESPONSES, {"answers": 4, "reasoning": 3 + 3, "tool calls": 5, "tool results": 4, "pictures": 6}),
        (BLOCKS, {"answers": 4, "reasoning": 6, "tool calls": 3 + 11, "tool results": 4, "pictures": 4}),
        (b',{"role":"user","content":"mine"}', {}),
        (b"", {}),
    ],
)
def test_each_word_of_a_model_and_its_tools_is_counted_as_it_stands(wire: bytes, sizes: dict[str, int]) -> None:
    assert dict(+message_sizes(wire)) == sizes
