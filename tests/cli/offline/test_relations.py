"""Names and commits of a folder, its index made first."""

from pathlib import Path

import pytest

from codewhale.cli.offline.index import index_build
from codewhale.cli.offline.relations import commits_of, symbols_of
from codewhale.cli.offline.search import Asked, Searcher
from codewhale.codesearch.build import CodeIndex
from codewhale.protocol.errors import CodeWhaleError
from support.repos import make_repo


async def test_the_index_is_made_and_asked(tmp_path: Path) -> None:
    repo, home = make_repo(tmp_path / "repo", {"app/keys.py": "def resolve():\n    pass\n"}), str(tmp_path / "home")
    found, notes = await symbols_of(home, str(repo), "resolve", "definitions", None)
    assert [spot.path for spot in found.spots] == ["app/keys.py"] and notes == ()
    (repo / "more.py").write_text("def resolve():\n    pass\n")
    found, _ = await symbols_of(home, str(repo), "resolve", "definitions", None)
    assert [spot.path for spot in found.spots] == ["app/keys.py", "more.py"]
    commits, _ = await commits_of(home, str(repo), "app keys", 3, None)
    assert [commit.paths for commit in commits.best] == [("app/keys.py",)]


async def test_a_file_that_is_not_there_is_told_with_one_that_is(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"app/keys.py": "x = 1\n"})
    with pytest.raises(CodeWhaleError, match=r"no file 'keys.py'.*did you mean app/keys.py"):
        await symbols_of(str(tmp_path / "home"), str(repo), "keys.py", "importers", None)


async def test_an_index_that_cannot_be_kept_is_told_with_its_place(tmp_path: Path) -> None:
    repo, home = make_repo(tmp_path / "repo", {"app/keys.py": "x = 1\n"}), tmp_path / "home"
    folder = Path(CodeIndex(str(repo), str(home)).path).parent
    folder.parent.mkdir(parents=True, mode=0o700)
    folder.write_text("no folder")
    told = f"index of {repo} could not be built: .*{folder}.*stored in {home} \\(CODEWHALE_HOME\\)"
    with pytest.raises(CodeWhaleError, match=told):
        await commits_of(str(home), str(repo), "keys", 3, None)
    with pytest.raises(CodeWhaleError, match=told):
        await Searcher(str(home), str(repo), Asked()).ask("keys")
    with pytest.raises(CodeWhaleError, match=told):
        await index_build(str(home), str(repo))
