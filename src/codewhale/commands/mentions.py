"""Files that a message names as @path: small ones go along with it, a large one stays a path, what is binary or holds
secrets is refused."""

import os
import re
import stat

from msgspec.structs import replace

from codewhale.lib.beneath import PathRefused, Root
from codewhale.lib.bounded import read_regular
from codewhale.lib.textform import decode
from codewhale.permissions.shell.paths import secret_file
from codewhale.protocol.errors import SessionError
from codewhale.protocol.ops import Attachment, SendMessage
from codewhale.protocol.views import FileMention
from codewhale.workspace.documents import image_facts

MOST, TRIED = 20, 1_000  # files, and names that may be one
IMAGE_BYTES = 5 << 20
MENTIONED_BYTES = 32 << 10
_MENTION = re.compile(r"""(?:(?<=[\s(\["'])|^)@(?:"([^"\n]{1,1024})"|([^\s"]{1,1024}))""", re.MULTILINE)
_ENDS = ".,;:!?)]}'"


def with_named_files(op: SendMessage, workspace: str) -> SendMessage:
    """The message with the files that it names. Raises SessionError for one that must not go along."""
    files = mentioned(op.text, workspace)
    for mention, _ in files:
        if mention.refused:
            remedy = "remove the @ to send only the path"
            raise SessionError(f"@{mention.path} cannot be attached: {mention.refused}; {remedy}")
    named = [Attachment(mention.path, data=data) for mention, data in files if mention.attached]
    return replace(op, attachments=(*op.attachments, *named[: max(0, MOST - len(op.attachments))]))


def mentioned(text: str, workspace: str) -> list[tuple[FileMention, bytes]]:
    """The files of the workspace that a message names as @path, each once, with the bytes that go along. A name that is
    none of a file there is only words."""
    root, rows = Root(workspace), dict[str, tuple[FileMention, bytes]]()
    for quoted, bare in list(dict.fromkeys(_MENTION.findall(text)))[:TRIED]:
        for path in dict.fromkeys(filter(None, (quoted, bare, bare.rstrip(_ENDS)))):
            row = None if len(rows) >= MOST else _mention(root, path)
            if row is not None:
                rows[row[0].path] = row
                break
    return list(rows.values())


def _mention(root: Root, path: str) -> tuple[FileMention, bytes] | None:
    try:
        path = root.relative(path)
        info = root.stat(path)
        why = secret_file(path) or secret_file(root.resolve(path))
        data = None if why else read_regular(root.open(path, os.O_RDONLY | os.O_NONBLOCK), IMAGE_BYTES)
    except (PathRefused, OSError):
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    if why:
        return FileMention(path, info.st_size, refused=why), b""
    picture = data is not None and image_facts(data) is not None
    if data is None or (len(data) > MENTIONED_BYTES and not picture):
        return FileMention(path, info.st_size), b""
    if not picture and (b"\0" in data or decode(data) is None):
        return FileMention(path, info.st_size, refused="it is binary"), b""
    return FileMention(path, len(data), attached=True), data
