"""A receiver of OTLP/HTTP on loopback, which decodes what comes by OpenTelemetry's own protobufs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """`status` and `answer`: of every request; `asked`: path and headers of each; `spans`: all that came."""

    url: str = ""
    status: int = 200
    answer: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """One request."""
        self.asked.append((path, headers))
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append({one.key: one.value.string_value for one in each.resource.attributes})
            self.spans += [span for scope in each.scope_spans for span in scope.spans]


def rejecting(spans: int) -> bytes:
    """An answer that takes all but so many."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = spans
    return bytes(answer.SerializeToString())


def said(span: Span) -> dict[str, str]:
    """Its attributes."""
    return {one.key: one.value.string_value for one in span.attributes}


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """One that runs while in the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.take(self.path, dict(self.headers.items()), body)
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
