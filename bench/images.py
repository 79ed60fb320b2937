"""Images: what each step of a build costs, cold and warm, sizes against the budget, and the same root by mkosi."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.serving import AbsentError, BenchError
from images.artifact.keyring import KeyRing
from images.recipe.inherit import load
from images.recipe.recipe import Recipe

BASE = "debian-12-minimal"
ROOT = Path(__file__).resolve().parent.parent
SECONDS = 1800.0
"""How long one build may take."""
ROOT_STEPS = ("mirrors", "bootstrap", "configure", "kernel", "root")
"""What mkosi does too: from package mirrors to a squashfs of the root."""


@dataclass(frozen=True)
class Build:
    """One build: seconds by step (of those that were not cached), in all, and bytes by artifact."""

    steps: dict[str, float]
    seconds: float
    bytes: dict[str, int]

    @property
    def root_seconds(self) -> float:
        """Seconds of what mkosi does too."""
        return sum(self.steps.get(name, 0.0) for name in ROOT_STEPS)

    @property
    def fetched(self) -> int:
        """Bytes of kernel, initrd and root: what the budget counts."""
        return sum(self.bytes[name] for name in ("kernel", "initrd", "root"))


@dataclass(frozen=True)
class Peer:
    """mkosi's build of the same root: seconds, and its squashfs's bytes."""

    version: str
    seconds: float
    size: int


@dataclass(frozen=True)
class Images:
    """Builds by what had changed, in the order in which they were made. `whole`: with all modules, as mkosi's."""

    builds: dict[str, Build]
    whole: dict[str, Build]
    budget_mib: int
    mkosi: Peer | None
    absent: str


class Site:
    """A recipe of ours, a cache and a store in one folder."""

    def __init__(self, folder: Path) -> None:
        """Make them, and a key."""
        self._folder, self._recipe = folder, folder / "recipe.yaml"
        (folder / "overlay/etc").mkdir(parents=True)
        KeyRing(folder / "keys").create()

    def write(self, **keys: Any) -> Recipe:
        """Let the recipe be the base's with `keys`."""
        self._recipe.write_text(json.dumps({"base": BASE, "name": "bench", "overlay": ["overlay"], **keys}))
        return load(self._recipe)

    def touch(self, content: str) -> None:
        """Change the overlay's file."""
        (self._folder / "overlay/etc/bench").write_text(content)

    def build(self, cache: str) -> Build:
        """Build by the real command.

        Raises:
            BenchError: it failed.
        """
        argv = [sys.executable, "-m", "netboot.cli.main", "image", "build", str(self._recipe), "--output", "json"]
        for name in ("store", "keys"):
            argv += [f"--{name}", str(self._folder / name)]
        done = _run([*argv, "--cache", str(self._folder / cache)], ROOT)
        report = json.loads(done)
        steps = {step["step"]: step["seconds"] for step in report["steps"] if not step["cached"]}
        return Build(steps, report["seconds"], report["bytes"])


def measure(folder: Path, *, quick: bool) -> Images:
    """Build cold and warm, then the same root by mkosi where it is installed. `quick`: nothing in profile release.

    Raises:
        BenchError: not root, or a build failed.
    """
    if os.geteuid() != 0:
        raise BenchError("images are built by root; run the bench with sudo, or leave the part images out (--only)")
    site, work = Site(folder / "images"), folder / "mkosi"
    budget = site.write().budget_mib
    site.touch("1")
    builds = {"nothing there": site.build("cache"), "nothing changed": site.build("cache")}
    site.touch("2")
    builds["a file of the overlay"] = site.build("cache")
    site.write(packages=["ethtool"])
    builds["one package more"] = site.build("cache")
    recipe = site.write(modules={"root": "all"}, budget_mib=1000)
    whole = {"dev": site.build("cold")}
    if not quick:
        site.write(modules={"root": "all"}, profile="release", budget_mib=1000)
        whole["release"] = site.build("cold")
    try:
        return Images(builds, whole, budget, mkosi(recipe, work), "")
    except AbsentError as error:
        return Images(builds, whole, budget, None, str(error))


def mkosi(recipe: Recipe, work: Path) -> Peer:
    """The same packages of the same mirror, without documentation and kernel, as a squashfs with zstd.

    Raises:
        AbsentError: mkosi is not installed, or cannot work here. BenchError: it made no image.
    """
    if shutil.which("mkosi") is None:
        raise AbsentError("mkosi is not installed (Debian: apt-get install mkosi)")
    for name in ("out", "workspace", "cache"):
        (work / name).mkdir(parents=True)
    start = time.monotonic()
    try:
        _run(mkosi_argv(recipe, work), work)
    except BenchError as error:
        raise AbsentError(f"mkosi does not work here: {error}") from None
    seconds = time.monotonic() - start
    files = [path for path in (work / "out").iterdir() if path.is_file() and path.name.startswith("image")]
    if not files:
        raise BenchError("mkosi ended without an image")
    return Peer(_run(["mkosi", "--version"], work).strip(), seconds, max(path.stat().st_size for path in files))


def mkosi_argv(recipe: Recipe, work: Path) -> list[str]:
    """The command of mkosi 14 (Debian 12's)."""
    packages = sorted({*recipe.packages, recipe.kernel.package})
    removed = (*recipe.remove, "/boot/*", "/var/cache/apt/*", "/var/lib/apt/lists/*")
    return [
        *("mkosi", "--distribution", recipe.distribution, "--release", recipe.suite),
        *("--mirror", recipe.sources[0].url, "--repositories", ",".join(recipe.sources[0].components)),
        *("--format", "plain_squashfs", "--compress-fs", "zstd", "--bootable", "no", "--manifest-format="),
        *("--base-packages", "no", "--with-docs", "no", "--package", ",".join(packages)),
        *(f"--remove-files={path}" for path in removed),
        *("--output", str(work / "out/image"), "--workspace-dir", str(work / "workspace"), "--force", "build"),
    ]


def _run(argv: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{argv[0]} did not end within {SECONDS:.0f} s") from None
    if done.returncode != 0:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise BenchError(f"exit status {done.returncode} from {' '.join(argv[:6])} …: {last}")
    return done.stdout
