"""Debian's order of versions (deb-version(7)), by dpkg itself: whoever compares two of them asks here."""

from collections.abc import Callable, Iterable

from images.run import run

_PAIRS = 200
"""Of one process: a command line of that many versions is far from the kernel's limit."""
_SCRIPT = """\
while [ $# -gt 0 ]; do
  dpkg --compare-versions "$1" lt-nl "$2" && echo earlier || echo later
  shift 2
done
"""


def earlier(pairs: Iterable[tuple[str, str]], done: Callable[[int], None]) -> dict[tuple[str, str], bool]:
    """Whether the first version of each pair comes before the second; `done` is told how many were compared.

    Raises:
        CommandError: dpkg is not installed here.
    """
    wanted = sorted(set(pairs))
    found: dict[tuple[str, str], bool] = {}
    for begin in range(0, len(wanted), _PAIRS):
        some = wanted[begin : begin + _PAIRS]
        words = [word for pair in some for word in pair]
        answers = run(["sh", "-euc", _SCRIPT, "dpkg", *words]).split()
        found |= {pair: answer == "earlier" for pair, answer in zip(some, answers, strict=True)}
        done(len(some))
    return found
