"""`netboot image build` as operators call it: a process, into the store of a folder, with the cache of all runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from images.artifact.manifest import Manifest
from images.store.store import Store
from lab.work import CACHE, ROOT

BUILD_CACHE = CACHE / "build"
SECONDS = 1800.0


def run_image_build(
    folder: Path, recipe: Path | str, *arguments: str, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """What it printed, and its status. `folder` has the keys; `recipe`: a path, or the name of a shipped one."""
    argv = [sys.executable, "-m", "netboot.cli.main", "image", "build", str(recipe), "--output", "json"]
    argv += ["--store", f"{folder}/store", "--keys", f"{folder}/keys", "--cache", str(BUILD_CACHE), *arguments]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)


def image_build(folder: Path, recipe: Path | str, *arguments: str) -> dict[str, Any]:
    """The result of a build that succeeds."""
    done = run_image_build(folder, recipe, *arguments)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def blob(folder: Path, manifest: Manifest, artifact: str) -> Path:
    """An artifact of an image in the store of `folder`."""
    path: Path = Store(folder / "store").blob_path(getattr(manifest.artifacts, artifact).sha256)
    return path


def packages(folder: Path, manifest: Manifest) -> dict[str, str]:
    """The image's packages, and their versions."""
    listed = json.loads(blob(folder, manifest, "packages").read_bytes())
    return {name: version for name, version, _ in listed}
