"""What the model was sent, rebuilt from a log."""

import os

from codewhale.lib.clock import SystemClock
from codewhale.protocol.messages import Image
from codewhale.session.artifacts import ArtifactStore
from codewhale.session.projection import request_body as rebuild
from codewhale.session.store import SessionStore


def request_body(home: str, session: str, number: int) -> bytes | None:
    """The exact body of model request `number` of a session, None when it was never sent. Raises SessionError."""
    artifacts = ArtifactStore(os.path.join(home, "artifacts"))

    def load(image: Image) -> bytes:
        return artifacts.get(image.artifact)

    events = [envelope.event for envelope in SessionStore(home, SystemClock()).read(session)]
    return rebuild(events, number, load)
