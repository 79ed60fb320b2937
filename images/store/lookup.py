"""From what people type to an image's digest."""

import re

from images.errors import NotFoundError
from images.store.store import Store

_PREFIX = re.compile(r"[0-9a-f]{8,64}")
_SHOWN = 16
"""Characters of a digest in a message about several."""


def resolve(store: Store, text: str) -> str:
    """The digest of a full digest, a unique beginning of one (8 characters at least), or a recipe's newest image.

    Raises:
        NotFoundError: nothing fits, or more than one does (the message names them). StoreError.
    """
    digests = store.digests()
    if text in digests:
        return text
    images = store.images()
    named = [image.digest for image in images if image.manifest.name == text]
    if named:
        return named[0]
    if not _PREFIX.fullmatch(text):
        names = ", ".join(sorted({image.manifest.name for image in images})) or "no image at all"
        raise NotFoundError(f"no image {text!r}; the store has {names}")
    fitting = [digest for digest in digests if digest.startswith(text)]
    if not fitting:
        raise NotFoundError(f"no image of the store begins with {text}")
    if len(fitting) > 1:
        known = {image.digest: image.manifest.name for image in images}
        each = ", ".join(f"{digest[:_SHOWN]} ({known.get(digest, 'damaged')})" for digest in fitting)
        raise NotFoundError(f"{text} begins more than one image: {each}; give more of the digest")
    return fitting[0]
