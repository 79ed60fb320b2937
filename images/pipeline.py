"""The build: a flat list of steps, from a recipe to a signed image in the store."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from images.cache import Cache
from images.manifest import Manifest, read_manifest
from images.overlay import read_folder
from images.recipe import Profile, Recipe
from images.sources import Mirror, probe
from images.step import I, Product, Step
from images.steps import bootstrap, configure, initrd, kernel, manifest, root, sign, store

STEPS: tuple[Step[Any], ...] = (
    bootstrap.STEP,
    configure.STEP,
    kernel.STEP,
    root.STEP,
    initrd.STEP,
    manifest.STEP,
)
"""The steps whose products are cached; `sign` and `store` cost nothing and are done each time."""


class Progress(Protocol):
    """Who wants to know how a build goes."""

    def begin(self, step: str) -> None:
        """A step begins."""

    def line(self, step: str, text: str) -> None:
        """What a step says."""

    def end(self, step: str, seconds: float, *, cached: bool) -> None:
        """A step ended, after `seconds`."""
