"""From what people type to an image's digest."""

import re

from images.errors import NotFoundError
from images.store import Store

_PREFIX = re.compile(r"[0-9a-f]{8,64}")


def resolve(store: Store, text: str) -> str:
    """The digest of a full digest, a unique beginning of one (8 characters at least), or a recipe's newest image.

    Raises:
        NotFoundError: nothing fits, or more than one does (the message names them).
    """
    digests = store.digests()
    if text in digests:
        return text
    named = [image for image in store.images() if image.manifest.name == text]
    if named:
        return named[0].digest
    if not _PREFIX.fullmatch(text):
        names = ", ".join(sorted({image.manifest.name for image in store.images()})) or "no image at all"
        raise NotFoundError(f"no image {text!r}; the store has {names}")
    fitting = [digest for digest in digests if digest.startswith(text)]
    if len(fitting) > 1:
        raise NotFoundError(f"{text} is the beginning of {' and '.join(fitting)}: give more of it")
    if not fitting:
        raise NotFoundError(f"no image of the store begins with {text}")
    return fitting[0]
