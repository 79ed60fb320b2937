"""One blob from a source into a file: continued where it broke off, verified to the last byte."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from images.artifact.manifest import Artifact
from images.registry.errors import DamagedError, UnreachableError
from images.registry.retry import RetryPolicy
from images.registry.sources import Source, blob_words
from images.values import files

Progress = Callable[[int], None]
"""Told how many more bytes are there; fewer than none where a place began again."""
_TRIES = 2
"""Bytes may be spoilt on the way once; twice the same is what the place has."""


def download(
    source: Source, name: str, artifact: Artifact, target: Path, retry: RetryPolicy, progress: Progress
) -> None:
    """Fetch an artifact.

    Raises:
        DamagedError: what the place has is not what was signed. RegistryError and its kin.
        images.errors.StoreError: it cannot be written, for example because the disk is full.
    """
    for left in reversed(range(_TRIES)):
        transfer = _Transfer(source, name, artifact, progress)
        try:
            with target.open("wb") as file:
                transfer.run(file, retry)
        except OSError as error:
            raise files.refused(f"cannot write {target}", error) from error
        if transfer.digest.hexdigest() == artifact.sha256:
            return
        progress(-transfer.have)
        if not left:
            what = blob_words(name, artifact.sha256)
            raise DamagedError(f"{what} of {source.where} is damaged: its bytes are not those that were signed")


class _Transfer:
    """How far one blob has come."""

    def __init__(self, source: Source, name: str, artifact: Artifact, progress: Progress) -> None:
        self._source, self._name, self._artifact, self._progress = source, name, artifact, progress
        self.have = 0
        self.digest = hashlib.sha256()

    def run(self, file: BinaryIO, retry: RetryPolicy) -> None:
        """To its last byte. An attempt that brought any does not count as failed."""
        failed = 0
        while True:
            before = self.have
            try:
                self._attempt(file)
            except UnreachableError as error:
                failed = 1 if self.have > before else failed + 1
                retry.wait(failed, error)
            else:
                return

    def _attempt(self, file: BinaryIO) -> None:
        size, source = self._artifact.size, self._source
        if self.have == size and size:
            return
        with source.blob(self._artifact, self._name, self.have) as given:
            if given.start != self.have:
                self._begin_again(file)
            for block in given.blocks:
                if self.have + len(block) > size:
                    what = blob_words(self._name, self._artifact.sha256)
                    raise DamagedError(f"{what} of {source.where} is damaged: it has more than the {size} bytes signed")
                file.write(block)
                self.digest.update(block)
                self.have += len(block)
                self._progress(len(block))
        if self.have < size:
            raise UnreachableError(f"{source.where} broke off in the middle of {self._name}")

    def _begin_again(self, file: BinaryIO) -> None:
        file.seek(0)
        file.truncate()
        self._progress(-self.have)
        self.have, self.digest = 0, hashlib.sha256()
