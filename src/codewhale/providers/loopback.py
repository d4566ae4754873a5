"""Which base URLs lead to this machine alone. Apart from the rest of an endpoint because it is asked at start-up."""

import re

_LOOPBACK = re.compile(
    r"https?://(?:localhost|[a-z0-9.-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:/.*)?", re.IGNORECASE
)


def on_loopback(base_url: str) -> bool:
    """Whether requests to this URL never leave the machine."""
    return _LOOPBACK.fullmatch(base_url) is not None
