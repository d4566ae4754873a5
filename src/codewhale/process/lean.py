"""What the program is made of is loaded without what it does not use."""

import gc
import sys

# asyncio has TLS where there is ssl: here libcurl and anyio make it. msgspec takes from typing_extensions, if it is
# there, what Python has itself. Either is loaded as usual for others who ask for it later.
_UNUSED = ("ssl", "typing_extensions")


def load_lean() -> None:
    """Load asyncio and msgspec without these: a fourteenth of the way to a first request. No garbage is collected
    from here on, for nothing that a start imports is any; the command collects again."""
    gc.disable()
    absent = {name: None for name in _UNUSED if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]  # None: there is no such module
    try:
        import asyncio  # noqa: F401

        import msgspec  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]
