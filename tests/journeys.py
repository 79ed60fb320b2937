"""Which files of the product a request goes through: recorded while it is answered, and listed in a document."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
ROOT = Path(__file__).parents[1]
ROOMS = tuple(f"{ROOT / room}/" for room in ("netboot", "images", "ipxe", "tokens"))


class Journey:
    """`files`: those whose functions were called so far, in the order in which each was entered first.

    Of this thread alone: what others do in the background has nothing to do with the request, and is never the same.
    """

    def __init__(self) -> None:
        self.files: list[str] = []

    def record(self, act: Callable[[], T]) -> T:
        """What `act` returns; the files that it goes through are added."""
        before = sys.getprofile()
        sys.setprofile(self._called)
        try:
            return act()
        finally:
            sys.setprofile(before)

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(ROOMS):
            file = str(Path(path).relative_to(ROOT))
            if file not in self.files:
                self.files.append(file)


def listed(page: Path) -> list[str]:
    """The files of a page's numbered list, each with a sentence: `1. `path`: …`."""
    return re.findall(r"^\d+\. `([\w/]+\.py)`: \S", page.read_text(encoding="utf-8"), re.MULTILINE)
