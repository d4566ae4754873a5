"""What an interface is opened with."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from codewhale.display.client import Connect
from codewhale.lib.clock import Clock, SystemClock
from codewhale.protocol.ops import OpenSession
from codewhale.protocol.screen import TuiSettings


class Setup(Struct, frozen=True):
    """`connect` opens the engine, once the first frame is drawn; `opening` is the session that is wanted. `home` is
    CODEWHALE_HOME; `patience` is that of the asking cards, None for the usual; `notices` are lines about
    the configuration, there once the engine is open."""

    connect: Connect
    opening: OpenSession
    home: str
    settings: TuiSettings = TuiSettings()
    environ: Mapping[str, str] = os.environ
    patience: object = None
    notices: Sequence[str] = ()
    clock: Clock = SystemClock()
