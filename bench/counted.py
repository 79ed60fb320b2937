"""What a control plane wrote: by whom, from the API server's audit log; and what etcd took, from its metrics."""

import json
import re
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.control_plane import flags_of
from bench.serving import BenchError
from lab.kube.cluster import Cluster

_WRITES = frozenset({"create", "update", "patch", "delete"})
_PUTS = "etcd_debugging_mvcc_put_total"
_RECEIVED = "etcd_network_client_grpc_received_bytes_total"
_OURS = "system:serviceaccount:netboot:netboot-"


@dataclass(frozen=True)
class Etcd:
    """`puts`: values that it took; `received`: bytes that it was sent, reads included, which are short; `written`:
    bytes that it had the kernel write to the disk, log, tables and all (proc(5), io)."""

    puts: int
    received: int
    written: int

    def __sub__(self, earlier: "Etcd") -> "Etcd":
        return Etcd(self.puts - earlier.puts, self.received - earlier.received, self.written - earlier.written)


def etcd(cluster: Cluster) -> Etcd:
    """What it counted so far.

    Raises:
        BenchError: it does not say.
    """
    url = next(flag.partition("=")[2] for flag in flags_of(cluster, "etcd") if flag.startswith("--listen-client-urls="))
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = [re.search(rf"^{name} (\S+)$", text, re.MULTILINE) for name in (_PUTS, _RECEIVED)]
    io = Path(f"/proc/{cluster.processes['etcd'].pid}/io").read_text()
    on_disk = re.search(r"^write_bytes: (\d+)$", io, re.MULTILINE)
    if not all(found) or on_disk is None:
        raise BenchError(f"etcd does not tell {_PUTS} and {_RECEIVED}")
    puts, received = (int(float(match[1])) for match in found if match)
    return Etcd(puts, received, int(on_disk[1]))


class Audit:
    """The audit log from where it ended when this was made, or was read last."""

    def __init__(self, cluster: Cluster) -> None:
        self._file = cluster.folder / "audit.log"
        now = self._file.stat()
        self._inode, self._at = now.st_ino, now.st_size

    def writes(self) -> Counter[str]:
        """Writes that were carried out since, by who and what: "netboot's nodes: patch nodes".

        Raises:
            BenchError: the API server began another file meanwhile, so that nobody can count.
        """
        if self._file.stat().st_ino != self._inode:
            raise BenchError(f"{self._file.name} was rotated while its lines were counted")
        found = Counter[str]()
        with self._file.open("rb") as log:
            log.seek(self._at)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                event = json.loads(line)
                if event["verb"] in _WRITES and 200 <= event["responseStatus"]["code"] < 300 and _kept(event):
                    found[f"{_who(event)}: {event['verb']} {_what(event)}"] += 1
        return found


def _kept(event: dict[str, Any]) -> bool:
    """Reviews of rights and tokens are created, answered and kept nowhere."""
    return not str((event.get("objectRef") or {}).get("resource", "")).endswith("reviews")


def _who(event: dict[str, Any]) -> str:
    name = str(event["user"]["username"])
    if name.startswith(("system:node:", "system:bootstrap:")):
        return "nodes"
    if name.startswith(_OURS):
        return f"netboot's {name.removeprefix(_OURS)}"
    return "Kubernetes" if name.startswith(("system:kube-", "system:serviceaccount:kube-", "system:api")) else name


def _what(event: dict[str, Any]) -> str:
    of = event.get("objectRef") or {}
    name = str(of.get("resource", "?"))
    return f"{name}/{of['subresource']}" if "subresource" in of else name
