"""Debian's order of versions (deb-version(7)), by dpkg itself: whoever compares two of them asks here."""

import re
from collections.abc import Callable, Iterable

from images.errors import CommandError
from images.run import run

_PAIRS = 200
"""Of one process: a command line of that many versions is far from the kernel's limit."""
_SCRIPT = """\
while [ $# -gt 0 ]; do
  status=0
  dpkg --compare-versions "$1" lt-nl "$2" 2>/dev/null || status=$?
  echo $status
  shift 2
done
"""
_ANSWERS = {"0": True, "1": False, "2": None}
"""dpkg(1): 2 where one of them is no version."""
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+:~-]{0,1023}")
"""What dpkg is asked about at all: it compares other characters too, and only warns."""


def earlier(pairs: Iterable[tuple[str, str]], done: Callable[[int], None]) -> dict[tuple[str, str], bool | None]:
    """Whether the first version of each pair comes before the second; None: one of them is no version.

    `done` is told how many were compared.

    Raises:
        CommandError: dpkg is not installed here, or failed.
    """
    asked = set(pairs)
    wanted = sorted(pair for pair in asked if all(map(_VERSION.fullmatch, pair)))
    found: dict[tuple[str, str], bool | None] = dict.fromkeys(asked.difference(wanted))
    if found:
        done(len(found))
    for begin in range(0, len(wanted), _PAIRS):
        some = wanted[begin : begin + _PAIRS]
        words = [word for pair in some for word in pair]
        answers = run(["sh", "-euc", _SCRIPT, "dpkg", *words]).split()
        if failed := set(answers) - _ANSWERS.keys():
            raise CommandError("dpkg --compare-versions", int(min(failed)), "it compared nothing; is dpkg installed?")
        found |= {pair: _ANSWERS[answer] for pair, answer in zip(some, answers, strict=True)}
        done(len(some))
    return found
