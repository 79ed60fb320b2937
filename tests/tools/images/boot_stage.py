"""Runs parts of the boot stage under the very shell and tools that the initrd has: busybox's."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from images.build.initrd import STAGE

BUSYBOX = shutil.which("busybox") or "/bin/busybox"
QUICK = "pause() { :; }\nnproc() { echo 2; }\ndeliver() { :; }\n"
"""Retries follow at once, and events stay in their files."""
_READ = next(line for line in (STAGE / "init").read_text().splitlines() if line.startswith("for part in "))
PARTS = _READ.removeprefix("for part in ").partition(";")[0].split()
"""As init reads them."""


@dataclass(frozen=True)
class Stage:
    """A folder that stands for the machine: its tools, its /run, its keys."""

    folder: Path
    namespace: int | None = None
    """A process whose network namespace it is in; ours if None."""

    @classmethod
    def make(cls, folder: Path) -> "Stage":
        """The folders and tools."""
        tools = folder / "bin"
        for name in (tools, folder / "run/events", folder / "run/image", folder / "keys"):
            name.mkdir(parents=True)
        subprocess.run([BUSYBOX, "--install", "-s", str(tools)], check=True)
        (tools / "signify-openbsd").symlink_to(shutil.which("signify-openbsd") or "/usr/bin/signify-openbsd")
        return cls(folder)

    @property
    def run_folder(self) -> Path:
        """What is /run/netboot on a machine."""
        return self.folder / "run"

    @property
    def image(self) -> Path:
        """The root image as far as it has been fetched; made empty, so that no tmpfs gets mounted."""
        path = self.run_folder / "image/root.img"
        path.touch()
        return path

    def sh(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `script` after the stage's parts have been read in, as init reads them."""
        settings = {
            "RUN": str(self.run_folder),
            "LIB": str(STAGE),
            "KEYS": str(self.folder / "keys"),
            "BUSYBOX": BUSYBOX,
            "BOOT": "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f",
            "MAC": "52:54:00:12:34:56",
            "NAME": "node-1",
            **variables,
        }
        parts = "".join(f'. "$LIB/{name}.sh"\n' for name in PARTS)
        assigned = "".join(f"{name}='{value}'\n" for name, value in settings.items())
        inside = [] if self.namespace is None else ["/usr/bin/nsenter", f"--net=/proc/{self.namespace}/ns/net"]
        return subprocess.run(
            [*inside, BUSYBOX, "sh", "-c", assigned + parts + QUICK + script],
            env={"PATH": str(self.folder / "bin"), "LC_ALL": "C"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
