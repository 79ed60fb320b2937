"""The kernel's log. Source: Linux Documentation/ABI/testing/dev-kmsg."""

import errno
import os
from pathlib import Path


def read_kmsg(path: Path, most: int) -> str:
    """From its beginning, at most `most` bytes: one record a read, EPIPE where records were overwritten meanwhile,
    EAGAIN at the end.

    Raises:
        OSError: it cannot be opened.
    """
    pieces, size = [], 0
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while size < most:
            try:
                piece = os.read(file, 8192)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue
                break
            if not piece:
                break
            size += len(piece)
            pieces.append(piece)
    finally:
        os.close(file)
    return b"".join(pieces).decode("utf-8", "replace")
