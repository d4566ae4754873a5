"""What goes with a person's message: images for models that take them, everything else as fenced text."""

import os

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.text import fenced, one_line
from codewhale.lib.textform import decode
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError
from codewhale.protocol.messages import Image
from codewhale.protocol.ops import Attachment
from codewhale.workspace.documents import image_facts

MOST = 20
IMAGE_BYTES = 5 << 20
TEXT_BYTES = 1 << 20
ALL_BYTES = 24 << 20


class AttachedContent(Struct, frozen=True):
    """What attachments came to: the `text` to send beside a message, and its `images`."""

    text: str = ""
    images: tuple[Image, ...] = ()


class AttachmentReader:
    """Makes attachments ready to be sent; images become artifacts."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    def enclose(self, attachments: tuple[Attachment, ...], workspace: str, no_images: str) -> AttachedContent:
        """Read and check them all. `no_images` says why images cannot be sent, "" where they can. Raises SessionError
        naming the attachment that cannot be sent, and what to do; nothing is sent then."""
        if len(attachments) > MOST:
            raise SessionError(f"{len(attachments)} attachments are too many: a message may have {MOST}")
        texts, images, size = [], [], 0
        for one in attachments:
            data = _bytes(one, workspace)
            size += len(data)
            if size > ALL_BYTES:
                raise SessionError(f"the attachments of a message may have {ALL_BYTES >> 20} MiB together")
            image = image_facts(data)
            if image is not None:
                images.append(self._image(one, image.media_type, data, no_images))
            else:
                texts.append(_text(one, data))
        return AttachedContent("\n\n".join(texts), tuple(images))

    def _image(self, one: Attachment, kind: str, data: bytes, no_images: str) -> Image:
        if no_images:
            raise SessionError(f"{_name(one)} cannot be sent: {no_images}")
        if len(data) > IMAGE_BYTES:
            raise SessionError(f"{_name(one)} has {len(data):,} bytes; an image may have {IMAGE_BYTES >> 20} MiB")
        return Image(kind, self._artifacts.put(data), len(data))


def _bytes(one: Attachment, workspace: str) -> bytes:
    if not one.path:
        return one.data
    path = os.path.join(workspace, os.path.expanduser(one.path))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SessionError(f"{_name(one)} cannot be attached: {one_line(one.path)}: {reason}") from None
    data = read_regular(fd, IMAGE_BYTES)
    if data is None:
        raise SessionError(f"{_name(one)} cannot be attached: it must be a file of at most {IMAGE_BYTES >> 20} MiB")
    return data


def _text(one: Attachment, data: bytes) -> str:
    form = decode(data)
    if one.media_type.startswith("image/") or form is None:
        raise SessionError(f"{_name(one)} is neither text nor a supported image (PNG, JPEG, GIF, WebP)")
    if len(data) > TEXT_BYTES:
        raise SessionError(f"{_name(one)} has {len(data):,} bytes; attached text may have {TEXT_BYTES >> 20} MiB")
    return f"Attached: {_name(one)}\n{fenced(form.text)}"


def _name(one: Attachment) -> str:
    return one_line(one.name or os.path.basename(one.path) or "the attachment", 120)
