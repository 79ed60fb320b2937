"""Files of YAML as they were parsed, kept for as long as they hold the same bytes: to parse them is what reading costs,
1.3 s of a core for 5,000 machines, to read and to hash them a hundredth of that."""

import hashlib
import threading
from pathlib import Path

from images.values import strict
from images.values.strict import Document

MOST_VALUES = 250_000
"""Of all that is kept together: about 10,000 machines, some 60 MiB. What is beyond is parsed each time."""


class Parsed:
    """Safe for threads. Whoever gets a document alters nothing of it, for it is others' too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Path, tuple[bytes, Document]] = {}
        self._values = self._beyond = 0

    def read(self, path: Path) -> Document:
        """As `strict.read`.

        Raises:
            images.values.strict.FaultsError: unreadable, or not YAML.
        """
        text = strict.text_at(path)
        digest = hashlib.sha256(text.encode()).digest()
        with self._lock:
            kept = self._kept.get(path)
        if kept is not None and kept[0] == digest:
            return kept[1]
        document = strict.parse(text, str(path))
        self._keep(path, digest, document)
        return document

    def _keep(self, path: Path, digest: bytes, document: Document) -> None:
        with self._lock:
            self._forget(path)
            if self._values + len(document.lines) <= MOST_VALUES:
                self._kept[path] = digest, document
                self._values += len(document.lines)
                return
            self._beyond += 1
            if self._beyond > len(self._kept):  # now and then: to look at all for each file would take hours
                self._beyond = 0
                for each in [each for each in self._kept if not each.exists()]:
                    self._forget(each)

    def _forget(self, path: Path) -> None:
        if (before := self._kept.pop(path, None)) is not None:
            self._values -= len(before[1].lines)
