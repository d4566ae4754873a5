"""A small tree of several kinds of files, its index, and a ranker over it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codewhale.codesearch.build import CodeIndex, refresh
from codewhale.codesearch.model import Commit
from codewhale.codesearch.reader import IndexReader

FILES = {
    "src/auth/token_store.py": '''"""Where tokens are kept."""


class TokenStore:
    """Keeps access tokens and refreshes those that have expired."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tokens = {}

    def refresh_token(self, name: str) -> str:
        """Ask the provider for a new token when the old one has expired."""
        raise PermissionError("the refresh token was revoked by the provider")
''',
    "src/auth/provider.py": '''"""Resolves which provider authenticates a request."""

from auth.token_store import TokenStore


def resolve_provider(request, providers):
    """The first provider whose scheme the request names."""
    for provider in providers:
        if provider.scheme == request.scheme:
            return provider
    return None
''',
    "src/net/rate_limiter.py": '''"""Limits how often a client may call."""

MAX_BURST_CALLS = 20


class RateLimiter:
    """A bucket of calls that fills with time."""

    def allow(self, client: str) -> bool:
        """Whether the client may call now."""
        return client not in self.waiting
''',
    "src/net/retry.py": '''"""Calls again what failed, later each time."""


def retry_with_backoff(call, attempts=3):
    """Wait twice as long after each failure."""
    for attempt in range(attempts):
        try:
            return call()
        except OSError:
            wait = 2**attempt
    raise TimeoutError(wait)
''',
    "src/store/session.ts": """// Sessions as they are saved.
export interface SavedSession { id: string; opened: number }

export class SessionStore {
  save(session: SavedSession): void {
    this.sessions.set(session.id, session);
  }
}
""",
    "tests/test_token_store.py": '''"""Tests of the token store."""

from auth.token_store import TokenStore


def test_refresh_token_of_an_expired_token() -> None:
    store = TokenStore("tokens")
    assert store.refresh_token("expired token provider") == "token"
''',
    "docs/tokens.md": "# Tokens\n\nThe token store refreshes an expired access token with its provider.\n",
    "README.md": "# Sample\n\nA sample with a rate limiter, a token store and sessions.\n",
}
COMMITS = (
    Commit("c" * 40, 1_700_000_300, "Forget bearer credentials at logout", ("src/auth/token_store.py",)),
    Commit("b" * 40, 1_700_000_200, "Throttle noisy neighbours", ("src/net/rate_limiter.py", "README.md")),
    Commit("a" * 40, 1_700_000_100, "Begin", ("src/store/session.ts", "src/net/retry.py")),
)


def planted(folder: Path) -> Path:
    """The tree, written into `folder/tree`."""
    tree = folder / "tree"
    for path, text in FILES.items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tree


def index_of(folder: Path, commits: Sequence[Commit] = ()) -> IndexReader:
    """A reader of an index of `folder/tree`, made in `folder/state`."""
    index = CodeIndex(str(folder / "tree"), str(folder / "state"), workers=1)
    asyncio.run(refresh(index, commits=commits))
    return IndexReader(index.open())


def indexed(folder: Path, commits: Sequence[Commit] = COMMITS) -> tuple[CodeIndex, IndexReader]:
    """The planted tree's index, made in `folder/state`, and a reader of it."""
    tree = planted(folder)
    return CodeIndex(str(tree), str(folder / "state"), workers=1), index_of(folder, commits)
