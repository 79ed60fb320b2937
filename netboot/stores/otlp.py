"""Traces of boots over OTLP/HTTP (opentelemetry.io/docs/specs/otlp), encoded by OpenTelemetry's own SDK."""

import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import requests
import urllib3
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from images.values.faults import root_cause, unverified
from images.values.sessions import session
from netboot import credentials
from netboot.config_outside import Traces
from netboot.lifecycle.boot_spans import ROOT, BootSpan, BootTrace, RejectedError, span_id, trace_id
from netboot.lifecycle.errors import CannotTellError

try:
    _VERSION = version("netboot")
except PackageNotFoundError:  # its files were copied, not installed
    _VERSION = ""
_REFUSED = (400, 413)
"""What is wrong with what was sent; any other status may be another when it is tried again."""
_LARGEST_ANSWER, _LARGEST_FILE, _BLOCK = 64 * 1024, 16 * 1024, 4096
_NAME, _VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}", re.ASCII), re.compile(r"[ -~]{1,8192}")
_OURS = frozenset({"host", "connection", "transfer-encoding", "accept-encoding", "expect"})


class OtlpCollector:
    """One request at a time: neither a proxy, ~/.netrc nor `OTEL_…` of the environment has a say in it, and no answer
    leads elsewhere. Headers and the authority are read anew each time."""

    def __init__(self, place: Traces, site: str) -> None:
        self._place = place
        self._resource = Resource({"service.name": "netboot", "service.version": _VERSION, "netboot.site": site})

    @property
    def where(self) -> str:
        """As messages name it."""
        return self._place.endpoint

    def export(self, boots: Sequence[BootTrace]) -> None:
        """Hand these over.

        Raises:
            CannotTellError: not now. RejectedError: the collector does not take them.
        """
        body = encode_spans(self.spans(boots)).SerializeToString()
        headers = read_headers(self._place.headers_file) if self._place.headers_file is not None else {}
        with ExitStack() as held:
            asking = held.enter_context(session())
            asking.verify = self._authority(held)
            answered = self._answered(asking, body, headers)
        _heed(*answered)

    def spans(self, boots: Sequence[BootTrace]) -> list[ReadableSpan]:
        """What is sent, as OpenTelemetry's SDK has spans that have ended."""
        return [span for boot in boots for span in _spans(boot, self._resource)]

    def _answered(self, asking: requests.Session, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        seconds, begun = self._place.deadline_seconds, time.monotonic()
        sent = {**headers, "Content-Type": "application/x-protobuf", "Accept-Encoding": "identity"}
        try:
            url = f"{self._place.endpoint}/v1/traces"
            answer = asking.post(url, body, headers=sent, timeout=seconds, allow_redirects=False, stream=True)
            with closing(answer):
                data = bytearray()
                while len(data) < _LARGEST_ANSWER and (block := answer.raw.read1(_BLOCK)):
                    data += block  # what has come, so that who sends a byte at a time is late too
                    if time.monotonic() - begun > seconds:
                        raise CannotTellError(f"it did not answer within {seconds:g} s")
                return answer.status_code, bytes(data)
        except requests.exceptions.SSLError as error:
            words = "its certificate is not believed" if unverified(error) else "TLS failed"
            raise CannotTellError(f"{words}: {root_cause(error)}; see traces.authority") from None
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError):
            raise CannotTellError(f"it did not answer within {seconds:g} s") from None
        except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise CannotTellError(f"it cannot be reached: {root_cause(error)}") from None

    def _authority(self, held: ExitStack) -> bool | str:
        path = self._place.authority
        if path is None:
            return True
        try:
            return str(held.enter_context(credentials.named(path)))
        except OSError as error:
            raise CannotTellError(credentials.unread(f"traces.authority: {path}", error)) from None


def _heed(status: int, body: bytes) -> None:
    if status in _REFUSED:
        raise RejectedError(f"the collector answers {status}")
    if status != 200:
        raise CannotTellError(f"it answers {status}, and not 200")
    try:
        rejected = ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans
    except DecodeError:
        raise CannotTellError("it answers 200 and something that is not OTLP: is it a collector?") from None
    if rejected:
        raise RejectedError(f"the collector rejected {rejected} of their spans")


def read_headers(path: Path) -> dict[str, str]:
    """Headers of a file, `Name: value` each, a line each.

    Raises:
        CannotTellError: it cannot be read, others can read it, or it has something else. The message repeats no value.
    """
    try:
        with credentials.opened(path) as file:
            status = os.fstat(file.fileno())
            text = file.read(_LARGEST_FILE).decode("ascii", "replace")
    except OSError as error:
        raise CannotTellError(credentials.unread(f"traces.headers_file: {path}", error)) from None
    if credentials.told_to_others(status):
        mode = stat.S_IMODE(status.st_mode)
        raise CannotTellError(f"others can read traces.headers_file {path} (mode {mode:04o}): `chmod 600 {path}`")
    headers: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        known = name.lower() in _OURS or name.lower() in map(str.lower, headers) or name.lower().startswith("content-")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value.strip(" ")) or known:
            raise CannotTellError(
                f"traces.headers_file: line {number} of {path} is no header: write `Name: value`, each once"
            )
        headers[name] = value.strip(" ")
    return headers


def _spans(boot: BootTrace, resource: Resource) -> Iterator[ReadableSpan]:
    scope = InstrumentationScope("netboot", _VERSION)
    for span in boot.spans:
        yield ReadableSpan(
            name=span.name,
            context=_context(boot.boot, span.span_id),
            parent=_context(boot.boot, span.parent) if span.parent is not None else None,
            resource=resource,
            attributes=span.attributes,
            events=[Event(one.name, one.attributes, one.at_ms * 1_000_000) for one in span.moments],
            links=_links(boot, span),
            status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
            start_time=span.begin_ms * 1_000_000,
            end_time=span.end_ms * 1_000_000,
            instrumentation_scope=scope,
        )


def _links(boot: BootTrace, span: BootSpan) -> list[Link]:
    if span.parent is not None or boot.before is None:
        return []
    return [Link(_context(boot.before, span_id(boot.before, ROOT)), {"netboot.link": "the boot before"})]


def _context(boot: str, span: int) -> SpanContext:
    return SpanContext(trace_id(boot), span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
