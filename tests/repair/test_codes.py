"""The codes of repairs: each with words, none written out beside the enum, the same in JSON as ever."""

import ast
from pathlib import Path

import msgspec

import codewhale
from codewhale.repair.codes import RepairCode

SOURCES = Path(codewhale.__file__).parent


def test_each_code_has_a_sentence_and_stays_the_text_it_was() -> None:
    assert msgspec.json.encode((RepairCode.EXTRA_COMMA, RepairCode.TEXT_DSML)) == b'["P1","T1"]'
    assert f"{RepairCode.VERB}" == RepairCode.VERB == "I1"
    assert len({code.words for code in RepairCode}) == len(RepairCode) == 46
    assert [code for code in RepairCode if not code.words.endswith(".")] == []


def test_no_code_is_written_out_beside_the_enum() -> None:
    codes = {code.value for code in RepairCode}
    bare = []
    for path in sorted(SOURCES.rglob("*.py")):
        if path.name != "codes.py":
            nodes = ast.walk(ast.parse(path.read_text()))
            bare += [
                f"{path.name}: {node.value}" for node in nodes if isinstance(node, ast.Constant) and node.value in codes
            ]
    assert bare == []
