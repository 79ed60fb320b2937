"""The second initrd file of a boot script, as the kernel sees it."""

import gzip
import subprocess
import tempfile
from pathlib import Path


def nonce_text(body: bytes) -> str:
    """The sealed nonce (base64) in an answer; that there is nothing else in it, for anybody else to read."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        busybox = ["busybox", "cpio", "-i", "-d"]
        subprocess.run(busybox, input=gzip.decompress(body), cwd=folder, check=True, capture_output=True)
        (found,) = (one for one in folder.rglob("*") if one.is_file())
        assert found.relative_to(folder) == Path("etc/netboot/nonce")
        assert found.stat().st_mode & 0o777 == 0o400
        return found.read_text().removesuffix("\n")
