"""A flat apt repository of small packages, signed by a key of its own, that publishes again and again."""

import contextlib
import hashlib
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from images.run import PATH


class AptRepository:
    """The repository in `folder`; `key` is the public half of what signs it, and lasts for `expires` (as gpg has it).

    `gpg_time`: what its gpg takes for the time (`20200101T000000`), where a key is to have expired.
    """

    def __init__(self, folder: Path, home: str, expires: str = "never", gpg_time: str | None = None) -> None:
        self.folder, self.key = folder, folder / "flat.asc"
        self._gpg = ["gpg", "--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""]
        self._gpg += ["--faked-system-time", gpg_time] if gpg_time else []
        _run(*self._gpg, "--quick-generate-key", "netboot tests", "ed25519", "sign", expires)
        _run(*self._gpg, "--armor", "--output", str(self.key), "--export")

    def publish(self, at: int, *packages: tuple[str, str, str]) -> None:
        """Publish (name, version, what its only file says) of each package and nothing else, at a time in seconds."""
        for old in self.folder.glob("*.deb"):
            old.unlink()
        paragraphs = [self._package(*package) for package in packages]
        (self.folder / "Packages").write_text("\n".join(paragraphs))
        data = (self.folder / "Packages").read_bytes()
        date = f"{datetime.fromtimestamp(at, UTC):%a, %d %b %Y %H:%M:%S} UTC"
        release = (
            f"Origin: Netboot Tests\nCodename: flat\nDate: {date}\n"
            f"Architectures: amd64\nSHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} Packages\n"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".Release") as file:
            file.write(release)
            file.flush()
            _run(*self._gpg, "--clearsign", "-o", str(self.folder / "InRelease"), file.name)

    def _package(self, name: str, version: str, text: str) -> str:
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: nobody <nobody@netboot.invalid>\n"
            "Description: for a test\n"
        )
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch, "tree")
            (tree / "DEBIAN").mkdir(parents=True)
            (tree / "usr/share/netboot").mkdir(parents=True)
            (tree / "DEBIAN/control").write_text(control)
            (tree / f"usr/share/netboot/{name}").write_text(text)
            for path in (tree, *tree.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            target = self.folder / f"{name}_{version}_amd64.deb"
            _run("dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(target))
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        return f"{control}Filename: ./{target.name}\nSize: {target.stat().st_size}\nSHA256: {digest}\n"


def _run(*argv: str) -> None:
    subprocess.run(
        argv, check=True, capture_output=True, timeout=300, env={"PATH": PATH, "SOURCE_DATE_EPOCH": "1700000000"}
    )


@contextlib.contextmanager
def repository(folder: Path, expires: str = "never", gpg_time: str | None = None) -> Iterator[AptRepository]:
    """An empty repository; the private key goes with the block."""
    with tempfile.TemporaryDirectory(prefix="netboot-gpg-") as home:  # short: its agent's socket lies in it
        folder.mkdir(mode=0o755)
        try:
            yield AptRepository(folder, home, expires, gpg_time)
        finally:
            _run("gpgconf", "--homedir", home, "--kill", "all")
