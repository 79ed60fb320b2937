"""Bodies of requests, as gunicorn reads them in chunks: what is none is the client's fault, and answered so."""

from collections.abc import Callable, Iterable
from typing import Any

from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import NoMoreData, ParseException
from werkzeug.exceptions import BadRequest

WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Chunks:
    """Gunicorn's reader of a body in chunks; what it raises is no answer of Flask's."""

    def __init__(self, reader: ChunkedReader) -> None:
        self._reader = reader

    def read(self, size: int) -> bytes:
        """As gunicorn asks. Raises BadRequest; the connection ends then: nobody knows where the next request begins."""
        try:
            piece: bytes = self._reader.read(size)
        except (ParseException, NoMoreData):
            self._reader.req.force_close()
            raise BadRequest("the body is not in chunks, as its Transfer-Encoding says, or ends too soon") from None
        return piece


def told_apart(application: WsgiApplication) -> WsgiApplication:
    """The same application, whose bodies raise what Flask has an answer to.

    Source: RFC 9112, section 7.1.
    """

    def with_chunks(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"]
        if isinstance(getattr(body, "reader", None), ChunkedReader):
            body.reader = _Chunks(body.reader)
        return application(environ, start_response)

    return with_chunks
