"""The keys that sign the images which tests build: the same for all of them, so that whatever has the keys in it, an
initrd, its documents and its gates, comes from the build cache a second time."""

import fcntl
import shutil
from pathlib import Path

from images.artifact.keyring import KeyRing
from lab.work import CACHE


def image_keys() -> Path:
    """Their folder, in the cache of all runs, made once; to be copied, for a site's keys are its own."""
    cache = CACHE / "lab"
    folder = cache / "image-keys"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "image-keys.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = cache / "image-keys.partial"
            shutil.rmtree(partial, ignore_errors=True)
            KeyRing(partial).create()
            partial.rename(folder)
    return folder
