"""Outside test cases: where CODEWHALE_SUITES says, else in shared/suites beside the checkout, and for a linked worktree
also beside the checkout that it belongs to."""

import os
from pathlib import Path

from support.house import ROOT


def suites() -> Path:
    """The folder, whether it is there or not."""
    if named := os.environ.get("CODEWHALE_SUITES"):
        return Path(named)
    places = [ROOT.parent / "shared" / "suites"]
    if (ROOT / ".git").is_file():
        repository = Path((ROOT / ".git").read_text().removeprefix("gitdir:").strip()).parents[1]
        places.append(repository.parent.parent / "shared" / "suites")
    return next((place for place in places if place.is_dir()), places[0])
