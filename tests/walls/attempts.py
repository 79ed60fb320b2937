"""The attempts of somebody who broke into a process, and the table of what each kind of process may do.

Of the standard library alone, beside `tests.processes`: it also runs in a virtual machine.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.intruder.sitecustomize import SIGNAL
from tests.processes import descendants, wait_for

Orders = dict[str, tuple[str, Any]]
"""label → act, and upon what."""

NAMES = {
    "boot": "boot-0",
    "management": "management",
    "controllers": "controllers",
    "join": "join-0",
    "approver": "approver-default",
    "nodes": "nodes-default",
    "fetcher": "fetcher",
    "pause": "pause",
    "traces": "traces",
    "resources": "resources",
    "shipper": "shipper",
    "keys": "keys",
}
ALLOWED: dict[str, set[str]] = {
    "boot": {"read nonce keys", "write own journal"},
    "management": {"read operators' tokens", "read issuer", "write enrolments", "write intents", "write rollouts"}
    | {"write channel", "replace channel", "create in store", "connect apiserver"},
    "controllers": {"read proof key", "write enrolments", "write intents", "write rollouts", "write history"}
    | {"write snapshot", "replace snapshot", "write state", "write own journal"}
    | {
        "write word from outside",
        "write position of traces",
        "write resources",
        "write other journal",
        "write boot-id key",
        "write channel",
        "replace channel",
        "create in store",
    },
    "join": {"read join key", "read sealing keys", "read nonce keys", "read issuer"}
    | {"write enrolments", "write own journal", "connect apiserver"},
    "approver": {"read approver", "write own journal", "connect apiserver"},
    "nodes": {"read nodes", "write own journal", "connect apiserver"},
    "fetcher": {"read registry's login", "write channel", "replace channel", "create in store"}
    | {"connect apiserver", "connect other"},
    "pause": {"read pause token", "write word from outside", "connect apiserver"},
    "traces": {"read collector's headers", "write position of traces", "connect apiserver"},
    "resources": {"read inventory's reader", "write resources", "connect apiserver"},
    "shipper": {"read shipper", "connect apiserver"},
    "keys": {"read reader of keys", "connect apiserver"},
}
"""All that is possible, of what `attempts` tries; everything else must be refused. Why: docs/operations.md."""
IN_CLUSTER: dict[str, set[str]] = {
    "join": {"read enroller"},
    "approver": {"read reader of enrolments"},
    "management": {"read reader of enrolments"},
}
"""Likewise, more of it where the site has `enrolments_kubernetes`."""
SHARED: dict[str, set[str]] = {
    **{kind: {"read shared boot-id key"} for kind in ("boot", "management", "join")},
    "keys": {"read sealing keys", "read nonce keys", "read shared boot-id key", "create in shared keys"}
    | {"write sealing keys", "write nonce keys", "write shared boot-id key"},
}
"""Likewise, more where a Secret has the keys that replicas share."""
ALL = {"large question"}
REFUSED = {"EACCES", "EPERM", "EROFS"}
SECRETS = {
    "operators' tokens": "secrets/operator.token",
    "join key": "tls/join.key",
    "authority's key": "tls/ca.key",
    "sealing keys": "secrets/sealing.keys",
    "proof key": "secrets/proof.key",
    "nonce keys": "secrets/nonce.keys",
    "issuer": "secrets/issuer.kubeconfig",
    "approver": "secrets/approver.kubeconfig",
    "nodes": "secrets/nodes.kubeconfig",
    "inventory's reader": "secrets/inventory.kubeconfig",
    "shipper": "secrets/shipper.kubeconfig",
    "enroller": "secrets/enrolments-join.kubeconfig",
    "reader of enrolments": "secrets/enrolments-reader.kubeconfig",
    "reader of keys": "secrets/keys.kubeconfig",
    "registry's login": "secrets/registry.json",
    "pause token": "secrets/pause.token",
    "collector's headers": "secrets/collector.headers",
}
"""Of the site that `tests.walls.site` makes, in its folder; the signing key is named by its digest."""
NOTIFY = "notify"
"""The socket of somebody who takes datagrams, in the site's folder."""
ABSTRACT = "netboot-test-walls"
"""The abstract socket of somebody who is none of the service."""


def attempts(root: Path, state: Path, kind: str, pids: Mapping[str, int], apiserver: int, other: int) -> Orders:
    """What is tried from a process of this kind. `root`: the site's folder; `state`: that of data and store; `pids`: of
    the service's processes by name, `supervisor` among them; `apiserver`, `other`: ports of this machine."""
    name, data, store = NAMES[kind], state / "data", state / "store"
    neighbour = "join-0" if kind != "join" else "boot-0"
    pid = {"neighbour": pids[neighbour], "supervisor": pids["supervisor"]}
    secrets = {label: root / path for label, path in SECRETS.items()}
    secrets["signing key"] = next((root / "keys").glob("*.key"))
    shared = _shared(root / "shared-keys")
    secrets |= shared
    own, kept = data / "journal" / f"{name}.db", data / "resources" / "objects.json"
    files = {
        "inventory": root / "inventory" / "site.yaml",
        "configuration": root / "netboot.yaml",
        "channel": store / "channels" / "stable.json",
        "snapshot": data / "snapshot.json",
        "state": data / "state.db",
        "enrolments": data / "enrolment.db",
        "intents": data / "intents.db",
        "history": data / "history.db",
        "rollouts": data / "rollouts.db",
        "word from outside": data / "pause" / "pause.json",
        "position of traces": data / "traces" / "position.json",
        "resources": kept if kept.exists() else data / "snapshot.json",
        "boot-id key": data / "boot-id.key",
        "own journal": own if own.exists() else data / "journal" / "boot-0.db",
        "other journal": data / "journal" / f"{neighbour}.db",
    }
    tried: Orders = {f"read {label}": ("read", str(path)) for label, path in secrets.items()}
    tried |= {f"write {label}": ("write", str(path)) for label, path in (files | shared).items()}
    tried |= {f"replace {label}": ("replace", str(files[label])) for label in ("inventory", "channel", "snapshot")}
    tried |= {"create in inventory": ("create", str(root / "inventory" / "more.yaml"))}
    tried |= {"create in store": ("create", str(store / "channels" / "more.json"))}
    tried |= {"create in shared keys": ("create", str(root / "shared-keys" / "more"))} if shared else {}
    tried |= {"create in secrets": ("create", str(root / "secrets" / "more"))}
    for act in ("signal", "limit", "starve", "trace", "memory", "environ"):
        tried |= {f"{act} {label}": (act, number) for label, number in pid.items()}
    tried |= {"connect apiserver": ("connect", apiserver), "connect other": ("connect", other)}
    tried |= {f"{act} other": (act, other) for act in ("multipath", "fast-open")}
    tried |= {act: (act, str(root / NOTIFY)) for act in ("datagram", "datagram-pair")}
    tried |= {"large question": ("spill", 64)}
    return tried | {"abstract socket": ("abstract", ABSTRACT), "run a program": ("run", "/usr/bin/true")}


def _shared(folder: Path) -> dict[str, Path]:
    """Files of the keys that replicas share, where they are made of a Secret."""
    names = {"sealing keys": "sealing.keys", "nonce keys": "nonce.keys", "shared boot-id key": "boot-id.key"}
    return {label: folder / name for label, name in names.items() if folder.exists()}


def broken_into(
    folder: Path, name: str, processes: Callable[[], Mapping[str, Any]], orders: Orders, seconds: float = 180.0
) -> dict[str, str]:
    """How each attempt ended, made by the process that serves requests or does the work. `folder`: what
    NETBOOT_TEST_INTRUDER says; `processes`: what `/readyz` says of them."""
    (folder / "orders").write_text(json.dumps(orders))
    answers = folder / name
    before = answers.stat().st_size
    pid = processes()[name]["pid"]
    os.kill(max(descendants(pid), default=pid), SIGNAL)
    wait_for(lambda: answers.stat().st_size > before and answers.read_bytes().endswith(b"\n"), seconds)
    ended: dict[str, str] = json.loads(answers.read_bytes()[before:])
    return ended


def done(ended: Mapping[str, str]) -> set[str]:
    """What succeeded."""
    return {label for label, how in ended.items() if how == "done"}


def odd(ended: Mapping[str, str]) -> dict[str, str]:
    """What neither succeeded nor was refused: an attempt that proves nothing."""
    return {label: how for label, how in ended.items() if how not in REFUSED | {"done"}}
