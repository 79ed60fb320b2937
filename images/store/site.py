"""The signed site bundle's two files in the store: they change together, in one instant.

`site` is a link to a folder under `bundles/`. Renaming a link is atomic, so a crash between the two files cannot leave
a bundle with another's signature, which no machine would accept.
"""

import hashlib
import shutil
from pathlib import Path

from images.errors import NotFoundError
from images.store import modes
from images.values import files


def read(root: Path) -> tuple[bytes, bytes]:
    """Bundle and signature, a pair that belongs together.

    Raises:
        NotFoundError: none has been signed yet. StoreError: it cannot be read.
    """
    for _ in range(3):  # the pair may be replaced, and the old one removed, between the two reads
        folder = (root / "site").resolve()
        try:
            return files.bytes_of(folder / "bundle.json", files.LARGE), files.small(folder / "bundle.sig")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise files.refused(f"cannot read {folder}", error) from error
    raise NotFoundError(f"no signed site bundle in {root}: run `netboot config bundle`")


def replace(root: Path, bundle: bytes, signature: bytes) -> None:
    """Put a pair in place; the caller holds the writers' lock.

    Raises:
        StoreError, OSError: the file system refuses; the old pair is in force. NotDurableError: the new one is.
    """
    folder = root / "bundles" / hashlib.sha256(bundle + signature).hexdigest()
    modes.folder(folder, root)
    files.write(folder / "bundle.sig", signature, mode=0o444, staging=root / "tmp")
    files.write(folder / "bundle.json", bundle, mode=0o444, staging=root / "tmp")
    files.sync_folder(folder.parent)
    site, link = root / "site", root / "tmp" / "site"
    link.symlink_to(Path("bundles", folder.name))
    if site.is_dir() and not site.is_symlink():
        site.rename(root / "tmp" / "old-site")  # put there by hand: ours is always a link
    link.rename(site)
    files.sync_name(site)
    for old in folder.parent.iterdir():
        if old != folder:
            shutil.rmtree(old)
