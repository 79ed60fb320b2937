"""Where helm and kubeconform come from, in this order; the first that has the program wins.

1. our cache folder, from an earlier run;
2. `NETBOOT_TOOLS`, a folder of xz-compressed programs that must have the pinned digests;
3. a build from the pinned Go module, and of what its own go.sum pins: minutes.
"""

import fcntl
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.toolchain import NoGoError, find_go


@dataclass(frozen=True, slots=True)
class Program:
    """`sum`: of the module, as go.sum has it; `digest`: of the program as it is in `NETBOOT_TOOLS`."""

    module: str
    version: str
    sum: str
    package: str
    digest: str


PROGRAMS = {
    "helm": Program(
        "helm.sh/helm/v3",
        "v3.19.5",
        "h1:l8zDGBhPaF2z5pTR5ASku/yZwi0qZrWthWMzvf1ZruE=",
        "./cmd/helm",
        "39d55a764ba09a4e8904a7d44fa514b47ef56e46999ee6b877c628c97904cb9b",
    ),
    "kubeconform": Program(
        "github.com/yannh/kubeconform",
        "v0.7.0",
        "h1:ZFfniR8VChrWQxaxTUGnNrxw8RIDkjVBrjdhXSamwjw=",
        "./cmd/kubeconform",
        "1e0053c63fc4fa92477e4a96fda96c587143c04b5ba147d490bcd2a7e9477c59",
    ),
}


class NoProgramError(Exception):
    """It cannot be had; the message says every way that was tried."""


def find(name: str, cache: Path) -> Path:
    """A program of `PROGRAMS`.

    Raises:
        NoProgramError.
    """
    wanted = PROGRAMS[name]
    target = cache / f"{name}-{wanted.version}" / name
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.access(target, os.X_OK):
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                new = Path(scratch) / "new"
                new.mkdir()
                if folder := os.environ.get("NETBOOT_TOOLS"):
                    _unpack(Path(folder), name, wanted, new / name)
                else:
                    _build(name, wanted, new / name, cache)
                shutil.rmtree(target.parent, ignore_errors=True)
                new.rename(target.parent)
    return target


def _unpack(folder: Path, name: str, wanted: Program, target: Path) -> None:
    archive = folder / f"{name}-{wanted.version}-linux-amd64.xz"
    try:
        data = lzma.decompress(archive.read_bytes())
    except OSError as error:
        raise NoProgramError(f"NETBOOT_TOOLS: {archive}: {error.strerror}; unset it to build") from None
    except (lzma.LZMAError, EOFError):
        raise NoProgramError(f"NETBOOT_TOOLS: {archive} is no whole archive: fetch it anew, or unset it") from None
    digest = hashlib.sha256(data).hexdigest()
    if digest != wanted.digest:
        raise NoProgramError(f"NETBOOT_TOOLS: {archive} has the digest {digest}, pinned is {wanted.digest}: not used")
    target.write_bytes(data)
    target.chmod(0o755)


def _build(name: str, wanted: Program, target: Path, cache: Path) -> None:
    try:
        go = str(find_go(cache))
    except NoGoError as error:
        raise NoProgramError(f"no {name}: NETBOOT_TOOLS is not set, and it cannot be built: {error}") from None
    print(f"building {name} {wanted.version} from its Go module: some minutes on two cores", file=sys.stderr)
    module = json.loads(_run(name, [go, "mod", "download", "-json", f"{wanted.module}@{wanted.version}"], cache))
    if module["Sum"] != wanted.sum:
        raise NoProgramError(f"{wanted.module} {wanted.version} has the sum {module['Sum']}, pinned is {wanted.sum}")
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        source = Path(scratch) / "source"
        shutil.copytree(module["Dir"], source)
        for path in (source, *source.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        argv = [go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w", "-o", str(target)]
        _run(name, [*argv, wanted.package], source)


def _run(name: str, argv: list[str], folder: Path) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoProgramError(f"building {name} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
