"""The tools that measure between two hosts, and what they say.

Sources: iperf3(1), `--json`: `end.sum_received.bits_per_second`, `error`; perftest, README, and
src/perftest_parameters.c for the table's header.
"""

import json
import re
from dataclasses import dataclass
from typing import Literal, get_args

Over = Literal["rdma", "tcp"]
OVER: tuple[Over, ...] = get_args(Over)
PORTS = 64

_HEADER = re.compile(r"^[ \t]*#bytes[ \t]+#iterations[ \t]+BW peak\[Gb/sec\][ \t]+BW average\[Gb/sec\]", re.MULTILINE)
_ROW = re.compile(
    r"^[ \t]*\d{1,12}[ \t]+\d{1,12}[ \t]+\d{1,9}\.\d{1,9}[ \t]+(\d{1,9}\.\d{1,9})(?:\s|$)", re.MULTILINE | re.ASCII
)
_NOT_YET = re.compile(
    r"Connection refused|Couldn't connect|Unable to init the socket connection|unable to connect to server",
    re.IGNORECASE,
)
_ERROR = re.compile(r'"error":\s*"([^"]{1,300})"')


@dataclass(frozen=True, slots=True)
class Tool:
    """How two hosts measure. `port`: of TCP, the first of `PORTS`; `seconds`: that bytes flow; `device`: the RDMA card,
    `mlx5_0`."""

    over: Over = "rdma"
    port: int = 18600
    seconds: int = 3
    device: str = ""

    @property
    def limit(self) -> int:
        """Seconds after which either side ends by itself, whatever became of the other, or of us."""
        return self.seconds + 45

    def server(self, turn: int) -> list[str]:
        """What the target runs; it ends after one client. Turns have ports of their own: a server that is left behind
        by one is in no other's way."""
        if self.over == "tcp":
            return [*self._bounded(), "iperf3", "--server", "--one-off", "--port", self._port(turn)]
        return [*self._bounded(), *self._perftest(turn)]

    def client(self, turn: int, address: str) -> list[str]:
        """What the source runs against the target's address."""
        if self.over == "tcp":
            where = ["--client", address, "--port", self._port(turn), "--connect-timeout", "5000"]
            return [*self._bounded(), "iperf3", *where, "--time", str(self.seconds), "--json"]
        return [*self._bounded(), *self._perftest(turn), address]

    def gbps(self, said: str) -> float | None:
        """Gbit/s that arrived, in what the client said; None: it was not measured. Never raises."""
        return iperf3(said) if self.over == "tcp" else perftest(said)

    def _bounded(self) -> list[str]:
        return ["timeout", str(self.limit)]

    def _port(self, turn: int) -> str:
        return str(self.port + turn % PORTS)

    def _perftest(self, turn: int) -> list[str]:
        device = ["--ib-dev", self.device] if self.device else []
        bounds = ["--port", self._port(turn), "--size", "8388608", "--duration", str(self.seconds)]
        return ["ib_write_bw", *device, *bounds, "--CPU-freq", "--report_gbits"]


def iperf3(said: str) -> float | None:
    """Gbit/s that arrived; None: there is no such number. Never raises."""
    try:
        told = json.loads(said)
        bits = told["end"]["sum_received"]["bits_per_second"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return bits / 1e9 if type(bits) in (int, float) and 0 < bits < 1e15 else None


def perftest(said: str) -> float | None:
    """Gbit/s, the average of the last row; None: there is no table of Gbit/s. Never raises."""
    header = _HEADER.search(said)
    found = _ROW.findall(said, header.end()) if header else []
    return float(found[-1]) or None if found else None


def not_yet(said: str) -> bool:
    """Whether a client says that nobody listens there, or not yet."""
    return _NOT_YET.search(said) is not None


def why(said: str) -> str:
    """Why there is no number, in the tool's words. Never raises."""
    told = _ERROR.search(said)
    lines = [told[1]] if told else said.splitlines()
    words = [plain for line in lines if (plain := _plain(line))]
    return words[-1] if words else "it said nothing"


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:200]
