"""Pictures that go with a message: every kind that is taken reaches the model as a picture, in every dialect."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.models.build import DIALECTS, build_dialect
from codewhale.models.dialects.anthropic import _IMAGES
from codewhale.models.dialects.base import ProviderSettings
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.ops import Attachment
from codewhale.services.attachments import AttachmentReader

# Media type -> how a file of it begins.
KINDS = {
    "image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff\xe0", "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x04\x00\x00\x00WEBP",
}  # fmt: skip


def strings(value: Any) -> list[str]:
    """Every text within a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    return [value] if isinstance(value, str) else [s for item in value for s in strings(item)] if value else []


def test_every_kind_that_a_dialect_names_is_tried() -> None:
    assert set(KINDS) == _IMAGES


@pytest.mark.parametrize("data", [*KINDS.values(), b"GIF87a"])
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_picture_is_sent_as_one(dialect: str, data: bytes, tmp_path: Path) -> None:
    artifacts = ArtifactStore(str(tmp_path / "artifacts"))
    attached = AttachmentReader(artifacts).enclose((Attachment(data=data + b"\0rest", name="a"),), str(tmp_path), "")
    (image,) = attached.images
    assert data.startswith(KINDS[image.media_type][:4])
    wire = build_dialect("p", ProviderSettings(dialect=dialect))
    sent = wire.message(Message("user", (Text("Look."), image)), lambda image: artifacts.get(image.artifact))
    said = strings(json.loads(sent))
    coded = base64.b64encode(data + b"\0rest").decode()
    assert any(text.endswith(coded) for text in said), said
    assert any(image.media_type in text for text in said) and not any("left out" in text for text in said)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_picture_that_is_gone_is_said_to_be(dialect: str) -> None:
    def gone(image: Image) -> bytes:
        raise KeyError(image.artifact)

    for kind in KINDS:
        wire = build_dialect("p", ProviderSettings(dialect=dialect))
        sent = json.loads(wire.message(Message("user", (Image(kind, "ab" * 32, 9),)), gone))
        assert any("no longer stored" in text and kind in text for text in strings(sent))
