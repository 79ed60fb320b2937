"""What the parts of the API are made from (`netboot.client.api`): paths, parameters, pages."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from netboot.client.errors import UnknownError
from netboot.client.watch import Watch

Values = Mapping[str, object]


class Asker(Protocol):
    """Who asks."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Values | None = None,
        headers: Values | None = None,
        body: object = None,
        text: bool = False,
        also: tuple[int, ...] = (),
    ) -> Any:
        """The answer, parsed, or with `text` as it is. `headers` and `query` that are None are not sent; a `body` that
        is a text goes as CSV; `also`: statuses that are answers, too.

        Raises:
            netboot.client.errors.ClientError: it was not done.
        """
        ...

    def follow(self, path: str, *, query: Values | None = None) -> Watch:
        """What happens there. Raises as `ask`, once it is read."""
        ...


class Api:
    """Operations of one part of the API."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker


def segment(name: object) -> str:
    """A name as one segment of a path.

    Raises:
        UnknownError: it is none, so nothing has it; asked for, it would be another path.
    """
    text = str(name)
    if "/" in text or text in ("", ".", ".."):
        raise UnknownError(f"nothing has the name {text!r}", "write it with letters, digits, '-' and '.' alone")
    return quote(text, safe="")


def pages(ask: Callable[[str | None], Mapping[str, Any]], items: str) -> Iterator[Any]:
    """The items of every page, one after the other; the next page is asked for when the one before was read."""
    after: str | None = None
    while True:
        page = ask(after)
        yield from page[items]
        after = page["continue"]
        if after is None:
            return
