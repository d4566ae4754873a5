"""/trust through the client."""

from pathlib import Path

from codewhale.protocol.ops import RunCommand
from codewhale.testing import harness


async def test_it_shows_trusts_and_forgets(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        session = await stage.open()

        async def said(line: str) -> tuple[bool, str]:
            output = await stage.client.submit(RunCommand(session, line))
            return output.ok, output.text

        assert await said("/trust") == (True, "The project has no configuration files of its own.")
        config = workspace / ".codewhale" / "config.toml"
        config.parent.mkdir()
        config.write_text('model = "m"\n')
        assert await said("/trust") == (True, f"new      {config}")
        assert (await said("/trust add"))[0] is False
        assert (await said("/trust add README.md"))[0] is False
        ok, text = await said("/trust add .codewhale/config.toml")
        assert ok and text.startswith(f"trusted as it is now: {config} (sha256 ")
        assert await said("/trust list") == (True, f"trusted  {config}")
        config.write_text("x = [")
        ok, text = await said("/trust")
        assert not ok and "not valid TOML" in text
        config.unlink()
        assert await said(f"/trust remove {config}") == (True, f"no longer trusted: {config}")
        assert (await said("/trust remove .codewhale/config.toml"))[0] is False
