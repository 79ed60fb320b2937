"""How the three services of `tests.cluster.replicated` come to be: what an operator does once, as docs/ha.md and
docs/custom-resources.md have it."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from images.artifact.keyring import KeyRing
from images.store.store import Store
from lab.kube.accounts import wait_until_in_force
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from lab.service import defects
from lab.work import ROOT
from netboot.config import load_config
from netboot.kube.accounts import make_kubeconfig
from netboot.kube.resources.kinds import ALL, ENROLMENT, GROUP, VERSION
from netboot.stores.bootkey import LENGTH
from tests.cluster.conftest import CACHE
from tests.cluster.replicated import NAMES, Replica, World
from tests.cluster.test_resources import established, piped
from tests.cluster.threats.chassis import Chassis
from tests.relays import Relay
from tests.sites import add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.service import Service

LEASE_SECONDS = 5
ROLES = {
    "issuer": "issuer",
    "approver": "approver",
    "nodes": "nodes",
    "inventory": "inventory",
    "shipper": "shipper",
    "orders": "orders",
    "enrolments-reader": "reader",
    "enrolments-join": "join",
    "keys": "keys",
}
"""Files of kubeconfigs, and the roles that they are of."""
MACHINES = [
    *(Chassis(f"k-{number:03}", number, on_record=False) for number in range(1, 200)),
    Chassis("held-200", 200, on_record=False),
    *(
        Chassis(f"r-{number}", number, on_record=False, declared={"profile": "rolled", "cluster": "none"})
        for number in (201, 202)
    ),
]
PLACES = ("provisioning", "management", "join")
PRINTED = (["crds"], *(["manifests", *of] for of in ([], ["--inventory"], ["--enrolments"], ["--keys"])))
"""What `netboot cluster` prints for `kubectl apply`."""


@contextmanager
def replicated(packages: Path = ROOT) -> Iterator[World]:
    """All three run, in order, with one leader of each kind; nothing is left of them after the block. In a folder of
    its own, which an ordinary account may enter. `packages`: of the version that they are."""
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="netboot-replicas-")))
        folder.chmod(0o755)
        own = ends.enter_context(cluster(find(CACHE), folder / "cluster"))
        kubectl = Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)
        apiserver = urlsplit(own.url).port or 443
        relays = [Relay(apiserver) for _ in NAMES]
        for relay in relays:
            ends.callback(relay.close)
        roots = [_site(folder / NAMES[0], own)]
        roots += [_copied(roots[0], folder / name) for name in NAMES[1:]]
        for root in roots:
            ends.enter_context(_disk(root / "data"))
        (roots[0] / "data" / "boot-id.key").write_bytes(os.urandom(LENGTH))
        replicas = [Replica(root.name, root, relay, packages) for root, relay in zip(roots, relays, strict=True)]
        applied(replicas[0].service, own, kubectl)
        for root, relay in zip(roots, relays, strict=True):
            _kubeconfigs(own, root / "secrets", relay.port)
        _declared(replicas[0], kubectl, own)
        world = World(own, kubectl, replicas, MACHINES)
        ends.callback(world.site.close)
        pool = ends.enter_context(ThreadPoolExecutor(len(replicas)))  # they end with the threads that start them
        for replica in replicas:
            ends.callback(_ended, replica)
        list(pool.map(lambda each: each.service.start(), replicas))
        world.settle()
        yield world
        assert [line for each in replicas for line in defects(each.service.log)] == []


def _ended(replica: Replica) -> None:
    replica.service.machines.close()
    if replica.runs:
        replica.service.kill()


def applied(service: Service, own: Cluster, kubectl: Kubectl) -> None:
    """Definitions, rights and policies of the version that a service is, until they are in force."""
    printed = [service.netboot("cluster", *words) for words in PRINTED]
    assert [each.stderr for each in printed if each.returncode] == []
    file = own.folder / "replicas.yaml"
    file.write_text("---\n".join(each.stdout for each in printed))
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    established(kubectl, *(kind.plural for kind in (*ALL.values(), ENROLMENT)))
    wait_until_in_force(own)


def _site(root: Path, own: Cluster) -> Path:
    """The first one, from whose files the others come."""
    inventory = {"machines": [each.entry() for each in MACHINES]}
    channels = {"compute": "stable", "rolled": "rolled"}
    profiles = [{"name": name, "channel": channel, "pcrs": "none"} for name, channel in channels.items()]
    rest = {"profiles": profiles, "channels": [{"name": channel} for channel in channels.values()]}
    more = "enrolments_kubernetes: {}\ninventory_kubernetes: {holds: true, shipper: secrets/shipper.kubeconfig, "
    more += "orders: secrets/orders.kubeconfig}\n"
    file = make_whole_site(root, 1, inventory=yaml.safe_dump(inventory | rest), workers=1, more=more)
    document = yaml.safe_load(file.read_text())
    document["clusters"]["default"] = {"endpoints": [own.url], "authority": "tls/cluster.crt"}
    document["join"]["hellos_per_minute"] = 100_000
    shutil.copyfile(own.folder / "ca.crt", root / "tls" / "cluster.crt")
    _written(root, document)
    config = load_config(file)
    image = add_image(config)
    for channel in channels.values():
        Store(config.store).set_channel(channel, image)
    add_image(config, name="next", salt="2")
    _bundled(root)
    return root


def _copied(first: Path, root: Path) -> Path:
    """The same images, keys and inventory, on a disk and on ports of its own."""
    shutil.copytree(first, root, ignore=shutil.ignore_patterns("data"))
    (root / "data").mkdir()
    document = yaml.safe_load((root / "netboot.yaml").read_text())
    for place, port in zip(PLACES, free_ports(len(PLACES)), strict=True):
        document[place]["listen"] = f"127.0.0.1:{port}"
        if "url" in document[place]:
            document[place]["url"] = f"{urlsplit(document[place]['url']).scheme}://127.0.0.1:{port}"
    _written(root, document)
    _bundled(root)
    return root


def _bundled(root: Path) -> None:
    """What machines are told of the site, as `netboot config bundle` signs it."""
    config = load_config(root / "netboot.yaml")
    bundle = config.site_bundle(issued=1_700_000_001).to_bytes()
    Store(config.store).set_bundle(bundle, KeyRing(config.keys).signing_key().sign(bundle))


def _written(root: Path, document: dict[str, object]) -> None:
    times = {"lease_seconds": LEASE_SECONDS, "renew_seconds": 3, "retry_seconds": 0.5}
    document |= {"replicas": {"name": root.name, **times}, "keys_kubernetes": {"replica": root.name}}
    (root / "netboot.yaml").write_text(yaml.safe_dump(document))


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """A small file system, which can be filled."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _kubeconfigs(own: Cluster, folder: Path, relay: int) -> None:
    """Of all accounts, by the replica's own way to the API server."""
    for name, role in ROLES.items():
        content = make_kubeconfig(own.admin, role, "netboot", 86_400, f"https://127.0.0.1:{relay}").content
        (folder / f"{name}.kubeconfig").write_bytes(content)
        (folder / f"{name}.kubeconfig").chmod(0o600)


def _declared(first: Replica, kubectl: Kubectl, own: Cluster) -> None:
    """Keys, machines, and whose TPM is whose, as objects."""
    pushed = first.service.netboot("cluster", "keys", "push", "--admin-kubeconfig", str(own.admin))
    assert pushed.returncode == 0, pushed.stderr
    piped(first.service, kubectl, "inventory")
    enrolled = [
        {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Enrolment",
            "metadata": {"name": each.name, "namespace": "netboot"},
            "spec": {"ek_sha256": each.as_it_is("").ek_sha256},
        }
        for each in MACHINES
    ]
    file = own.folder / "enrolled.yaml"
    file.write_text(yaml.safe_dump_all(enrolled))
    kubectl("create", "-f", str(file))
