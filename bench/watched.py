"""How many Nodes are out of service at once at most, by what the API server tells of each change."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests

from bench.serving import BenchError
from lab.kube.cluster import Cluster

_NODES = "/api/v1/nodes"
_SECONDS = 5
"""Of one watch; the next one goes on where it ended."""


def serves(node: Mapping[str, Any]) -> bool:
    """Whether a Node takes work: it is Ready, and no taint on it is netboot's."""
    conditions, taints = node.get("status", {}).get("conditions", ()), node["spec"].get("taints", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not any(one["key"].startswith("netboot.dev/") for one in taints)


class Watched:
    """`out`: how many are out of service now, one that is deleted too; `most`: at once, at most, since the start."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self._serving = {node["metadata"]["name"]: serves(node) for node in nodes}
        self.most = self.out
        self.problem = ""

    @property
    def out(self) -> int:
        """How many are out of service now."""
        return list(self._serving.values()).count(False)

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of a watch."""
        if event["type"] == "ERROR":
            self.problem = str(event["object"].get("message"))
            return
        name = event["object"]["metadata"]["name"]
        self._serving[name] = event["type"] != "DELETED" and serves(event["object"])
        self.most = max(self.most, self.out)


@contextmanager
def watched(cluster: Cluster) -> Iterator[Watched]:
    """All Nodes, from now until the block ends.

    Raises:
        BenchError: not every change was told.
    """
    session, stopping = requests.Session(), threading.Event()
    session.trust_env, session.verify = False, str(cluster.folder / "ca.crt")
    session.cert = (str(cluster.folder / "admin.crt"), str(cluster.folder / "admin.key"))
    listed = session.get(f"{cluster.url}{_NODES}", timeout=60).json()
    found = Watched(listed["items"])

    def follow() -> None:
        version = listed["metadata"]["resourceVersion"]
        try:
            while not stopping.is_set() and not found.problem:
                asked = {"watch": "1", "timeoutSeconds": str(_SECONDS), "resourceVersion": version}
                with session.get(f"{cluster.url}{_NODES}", params=asked, stream=True, timeout=60) as answer:
                    for line in answer.iter_lines():
                        event = json.loads(line)
                        found.take(event)
                        version = event["object"]["metadata"].get("resourceVersion", version)
        except (OSError, ValueError) as error:
            found.problem = str(error)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopping.set()
        thread.join()
        session.close()
    if found.problem:
        raise BenchError(f"Nodes could not be followed: {found.problem}")
