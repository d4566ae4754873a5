"""The map of the code in the first request: pinned with the head for a whole session, and nothing when it is off."""

from pathlib import Path

import msgspec

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.testing import harness
from support.searchtree import planted

SCRIPT = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]
ON = "[context]\ncodemap_tokens = 400\n"


def head(body: bytes) -> str:
    """The system text of a request."""
    text: str = msgspec.json.decode(body)["messages"][0]["content"]
    return text


async def test_a_session_keeps_the_map_that_it_began_with(tmp_path: Path, home: Path) -> None:
    (home / "config.toml").write_text(ON)
    tree = planted(tmp_path)
    await refresh(CodeIndex(str(tree), str(home), workers=1))
    async with harness(home, tree, SCRIPT) as stage:
        session = await stage.open()
        await stage.turn("Go.", session)
        (tree / "src/net/other.py").write_text("def other_walrus() -> None: ...\n")
        await refresh(CodeIndex(str(tree), str(home), workers=1))
        await stage.turn("Go on.", session)
        await stage.turn("Go.")
        first, second, new = map(head, stage.provider.requests)
        assert first == second and "<codemap>" in first and "token_store.py: TokenStore" in first
        assert "other_walrus" not in first and "other_walrus" in new


async def test_without_a_budget_or_an_index_there_is_none(tmp_path: Path, home: Path) -> None:
    tree = planted(tmp_path)
    (home / "config.toml").write_text(ON)
    async with harness(home, tree, SCRIPT) as stage:
        await stage.turn("Go.")
        plain = head(stage.provider.requests[0])
    await refresh(CodeIndex(str(tree), str(home), workers=1))
    (home / "config.toml").write_text("")
    async with harness(home, tree, SCRIPT) as stage:
        await stage.turn("Go.")
        assert head(stage.provider.requests[0]) == plain and "<codemap>" not in plain
        assert not stage.app.parts.services.built("code_maps")
