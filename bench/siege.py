"""Join under siege: how long an honest machine's hello takes while 1,000 connections from 64 addresses get nowhere."""

import json
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.apart import apart
from bench.besiegers import COUNT, KINDS, Target, besieged, connected
from bench.report_join import p99
from bench.serving import AbsentError, BenchError
from bench.stats import middle
from lab.own_network import own_network
from tests.processes import wait_for
from tests.sockets.join_site import JoinSite, join_site
from tests.soft_tpm import Machine

IDLE = "idle"
_HELLO_SECONDS = 60.0
"""Against hanging alone: how long a hello takes is what is measured."""
HONEST = {4: "127.70.0.", 6: "2001:db8:51e7::"}
"""Where honest machines ask from; those of IPv6 from another /64 than the besiegers'."""
FAMILIES = {"IPv4, 64 addresses": ("127.0.0.1", "127.66.0."), "IPv6, one /64": ("2001:db8:51e6::1", "2001:db8:51e6::")}


@dataclass(frozen=True)
class Siege:
    """Seconds of each honest hello, over a connection of its own: by family, then by round, then by kind."""

    rounds: dict[str, list[dict[str, list[float]]]]

    def ratio(self, family: str, kind: str) -> float:
        """p99 as a multiple of that of the idle server in the same round: the median of the rounds."""
        return middle(p99(each[kind]) / p99(each[IDLE]) for each in self.rounds[family])

    def worst(self, family: str) -> float:
        """The largest such ratio of any kind."""
        return max(self.ratio(family, kind) for kind in self.rounds[family][0] if kind != IDLE)


def measure(folder: Path, rounds: int, seconds: float, kinds: Sequence[str] = KINDS) -> Siege:
    """Measure a join process, with a cluster in memory, in a network namespace.

    Raises:
        AbsentError: we are not root. BenchError: a hello was not answered, or no siege could be laid.
    """
    found: dict[str, list[dict[str, list[float]]]] = {family: [] for family in FAMILIES}
    try:
        with (
            own_network("2001:db8:51e6::/64", "2001:db8:51e7::/64"),
            join_site(folder / "siege", hellos_per_minute=1_000_000) as site,
        ):
            site.start(address="::")
            wait_for(site.ready)
            authorities = (site.folder / "tls" / "ca.crt").read_text()
            for _ in range(rounds):
                for family, (host, prefix) in FAMILIES.items():
                    target = Target(host, site.ports["join-0"], prefix, authorities)
                    found[family].append(_round(site, target, seconds, kinds))
    except PermissionError:
        raise AbsentError("a siege needs a network namespace of its own, and so root") from None
    return Siege(found)


def _round(site: JoinSite, target: Target, seconds: float, kinds: Sequence[str]) -> dict[str, list[float]]:
    body = json.dumps(Machine(site.boot()).hello()).encode()
    times = {IDLE: apart(_honest, target, body, seconds)}
    for kind in kinds:
        with besieged(target, kind, COUNT * 9 // 10 if ":" not in target.host else COUNT // 3):
            times[kind] = apart(_honest, target, body, seconds)
    return times


def _honest(target: Target, body: bytes, seconds: float) -> list[float]:
    context = ssl.create_default_context(cadata=target.authorities)
    context.check_hostname = False
    head = f"POST /v1/join/hello HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    prefix = HONEST[6 if ":" in target.host else 4]
    took, end = list[float](), time.monotonic() + seconds
    while time.monotonic() < end:
        began, answer = time.monotonic(), b""
        sock = connected(target, f"{prefix}{len(took) % 100 + 1}")
        sock.settimeout(_HELLO_SECONDS)
        with context.wrap_socket(sock) as wrapped:
            wrapped.sendall(head.encode() + body)
            while piece := wrapped.recv(65536):
                answer += piece
        took.append(time.monotonic() - began)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise BenchError(f"hello was answered {answer[:200]!r}")
    return took
