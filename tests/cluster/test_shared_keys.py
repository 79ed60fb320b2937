"""The keys that replicas share are those of a Secret: two sites' folders, one API server, and what may become of it.

A control plane of its own: rights, the Secret and the API server itself go here, and come back.
"""

import base64
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from images.store.store import Store
from lab.kube import cluster as lab
from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import Kubectl
from netboot.clock import SystemClock
from netboot.config import Config, load_config
from netboot.config_outside import BOOT_IDS, NONCES, SEALING
from netboot.controllers.shared_keys import Follows, SharedKeysController
from netboot.kube.connection import connect
from netboot.kube.shared_keys import RETIRED, KubeSharedKeys
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.shared_keys import InUse
from netboot.stores.sealing import read_keys
from netboot.stores.shared_keys import RECORD, KeptKeys
from tests import soft_tpm
from tests.cluster.conftest import CACHE
from tests.commands import Ran, Run, caller
from tests.joining import IMAGE, pinned
from tests.processes import wait_for
from tests.shared_keys_contract import CASES, World
from tests.sites import add_image, free_ports, make_site
from tests.sockets.join_site import JoinSite, make_join_site
from tests.sockets.service import Service

pytestmark = pytest.mark.cluster
SECONDS = 180.0
"""Against hanging alone."""
MAC1 = "52:54:00:00:00:01"
START_SECONDS = 300.0
"""Likewise, until all processes of a service are there, as `Service.launch` has it."""
SECRET = "/api/v1/namespaces/netboot/secrets/netboot-keys"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(find(CACHE), tmp_path_factory.mktemp("keys-cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def admin(own: Cluster) -> Iterator[Admin]:
    with closing(Admin(own)) as admin:
        yield admin


@pytest.fixture(scope="module")
def kubectl(own: Cluster) -> Kubectl:
    return Kubectl(find(CACHE) / "kubectl", own.admin, own.folder)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return caller(capsys)


def configured(file: Path, replica: str) -> None:
    file.write_text(f"{file.read_text()}keys_kubernetes: {{replica: {replica}}}\n")


def accounts(run: Run, file: Path, own: Cluster, kubectl: Kubectl) -> None:
    """As docs/ha.md has it."""
    printed = run("cluster", "manifests", "--keys", "--config", file)
    assert (printed.status, printed.err) == (0, "")
    path = kubectl.folder / "keys.yaml"
    path.write_text(printed.out)
    kubectl("apply", "-f", str(path))
    made = run("cluster", "kubeconfigs", "--keys", "--admin-kubeconfig", own.admin, "--config", file)
    assert (made.status, made.out.split(",")[0]) == (0, f"wrote {file.parent}/secrets/keys.kubeconfig: netboot-keys")


@pytest.fixture(autouse=True)
def namespace(own: Cluster, admin: Admin, kubectl: Kubectl) -> Iterator[None]:
    """There for each test, and without a Secret and words of replicas."""
    if admin("GET", "/api/v1/namespaces/netboot").status_code == 404:
        kubectl("create", "namespace", "netboot")
    yield
    admin("DELETE", SECRET)
    admin("DELETE", "/api/v1/namespaces/netboot/configmaps/netboot-keys-in-use")


@contextmanager
def apiserver_down(own: Cluster, admin: Admin) -> Iterator[None]:
    """Killed, and started again after the block: asked to end it would wait a minute for those who watch."""
    apiserver = own.processes["kube-apiserver"]
    apiserver.kill()
    apiserver.wait()
    try:
        yield
    finally:
        lab._start(own, "kube-apiserver", list(apiserver.args))  # type: ignore[arg-type]
        wait_for(lambda: admin("GET", "/readyz").status_code == 200, lab.START_SECONDS)


class Replica:
    """A site's folder, join on it, and who keeps its keys as the Secret has them."""

    def __init__(self, folder: Path, name: str, run: Run, own: Cluster, kubectl: Kubectl) -> None:
        self.name, self.file, self.ahead = name, folder / "netboot.yaml", 0.0
        make_join_site(folder)
        (folder / "data" / "boot-id.key").write_bytes(name.encode() * 32)
        configured(self.file, name)
        self.site = JoinSite(folder, load_config(self.file))
        self.site.publish(pinned(soft_tpm.Machine("")))
        self.folder = folder / "shared-keys"
        self.folder.mkdir(mode=0o700)
        accounts(run, self.file, own, kubectl)
        self.controller = self.followed()

    def followed(self) -> SharedKeysController:
        """Another one that follows, as after a restart; the one before has ended. `ahead`: seconds of its clocks, of
        which that for how long a key has sealed stands still otherwise."""
        path = self.file.parent / "secrets" / "keys.kubeconfig"
        self.controller = SharedKeysController(
            self.name,
            "netboot/netboot-keys",
            (SEALING, NONCES, BOOT_IDS),
            lambda: KubeSharedKeys(connect(path, manifests="keys"), "netboot", "netboot-keys"),
            KeptKeys(self.folder, lambda: round((1_000.0 + self.ahead) * 1000)),
            SystemClock(),
            lambda: time.monotonic() + self.ahead,
        )
        self.controller.start()
        return self.controller

    def seals(self) -> str:
        return read_keys(self.folder / SEALING).keys[0].id.hex()

    def opens(self) -> list[str]:
        return [key.id.hex() for key in read_keys(self.folder / SEALING).keys]


@pytest.fixture
def replicas(tmp_path: Path, run: Run, own: Cluster, kubectl: Kubectl) -> Iterator[tuple[Replica, Replica]]:
    """Two, of which the first has made the Secret of its own files."""
    first = Replica(tmp_path / "a", "a", run, own, kubectl)
    wait_for(lambda: "there is no Secret netboot/netboot-keys: `netboot cluster keys push`" in said_by(first), SECONDS)
    assert said_by(first).endswith("there are no keys yet, and none are made up: nothing boots here")
    assert list(first.folder.iterdir()) == []
    pushed = run("cluster", "keys", "push", "--admin-kubeconfig", own.admin, "--config", first.file)
    assert (pushed.status, pushed.err) == (0, "")
    second = Replica(tmp_path / "b", "b", run, own, kubectl)
    both = (first, second)
    try:
        for each in both:
            in_order(each)
            each.site.start()
        for each in both:
            wait_for(each.site.ready, SECONDS)
        yield both
    finally:
        for each in both:
            each.controller.stop()
            for process in each.site.processes.values():
                process.kill()
                process.wait()


def in_order(*replicas: Replica) -> None:
    """What they have is what the Secret has."""
    for replica in replicas:
        wait_for(partial(_ok, replica), SECONDS)


def _ok(replica: Replica) -> bool:
    return replica.controller.status().ok


def says_it(replica: Replica, words: str) -> bool:
    return words in said_by(replica)


def said_by(replica: Replica) -> str:
    return replica.controller.status().message


def applied(admin: Admin, path: str, document: dict[str, Any]) -> None:
    """Server-side apply."""
    answer = admin("PATCH", f"{path}?fieldManager=test&force=true", {"apiVersion": "v1", **document})
    assert answer.ok, answer.text


class RealWorld:
    """The API server as a `World`."""

    def __init__(self, own: Cluster, admin: Admin) -> None:
        self._admin, self._seen = admin, KubeSharedKeys(connect(own.admin), "netboot", "netboot-keys")
        self.follows: Follows = self._seen

    def put(self, data: Mapping[str, str], retired: str = "") -> None:
        metadata = {"name": "netboot-keys", "namespace": "netboot", "annotations": {RETIRED: retired}}
        applied(self._admin, SECRET, {"kind": "Secret", "metadata": metadata, "data": dict(data)})

    def remove(self) -> None:
        assert self._admin("DELETE", SECRET).status_code == 200

    def replicas(self) -> Mapping[str, InUse]:
        return self._seen.replicas()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(case: Callable[[World], None], own: Cluster, admin: Admin) -> None:
    metadata = {"name": "netboot-keys-in-use", "namespace": "netboot"}
    path = "/api/v1/namespaces/netboot/configmaps/netboot-keys-in-use"
    applied(admin, path, {"kind": "ConfigMap", "metadata": metadata})
    case(RealWorld(own, admin))


class Fleet:
    """One machine that boots once more each time."""

    resets = 10

    @classmethod
    def machine(cls, replica: Replica) -> soft_tpm.Machine:
        cls.resets += 1
        key, now_ms = (replica.folder / BOOT_IDS).read_bytes(), time.time_ns() // 1_000_000
        return soft_tpm.Machine(mint(key, "gpu-001", IMAGE, now_ms + cls.resets, cls.resets), resets=cls.resets)


@contextmanager
def under_way(first: Replica, second: Replica) -> Iterator[None]:
    """Exchanges whose first step is before the block, and whose second is after it, at the other replica."""
    begun = [(one, other, Fleet.machine(one)) for one, other in ((first, second), (second, first))]
    greeted = [one.site.hello(machine).body for one, _, machine in begun]
    yield
    for (_, other, machine), hello in zip(begun, greeted, strict=True):
        said = other.site.attest(machine, hello)
        assert said.status == 200, said


def test_keys_are_rotated_while_exchanges_go_from_one_replica_to_the_other(
    replicas: tuple[Replica, Replica], run: Run, own: Cluster
) -> None:
    first, second = replicas

    def rotate(*step: str) -> Ran:
        given = ("--admin-kubeconfig", own.admin, "--config", first.file)
        return run("cluster", "keys", "rotate", "sealing", *step, *given)

    with under_way(first, second):
        assert first.opens() == second.opens() and len(first.opens()) == 1
    old = first.seals()
    second.controller.stop()
    assert rotate("--dry-run").out == "would be done: a new key opens\n"
    with under_way(first, second):
        assert rotate().status == 0
        wait_for(lambda: len(first.opens()) == 2, SECONDS)
    new = first.opens()[1]
    wait_for(lambda: first.controller.status().ok, SECONDS)
    refused = wait_for(lambda: [said for said in [rotate("--promote")] if "a does not" not in said.err], SECONDS)[0]
    assert (refused.status, refused.err.splitlines()[:2]) == (
        5,
        ["Error: nothing was done:", f"b does not have {new} yet"],
    )
    assert first.opens() == [old, new]
    second.followed()
    wait_for(lambda: second.opens() == [old, new], SECONDS)
    wait_for(lambda: rotate("--promote", "--dry-run").status == 0, SECONDS)
    with under_way(first, second):
        assert rotate("--promote").status == 0
        wait_for(lambda: first.seals() == second.seals() == new, SECONDS)
    again = rotate("--promote")
    assert (again.status, again.out) == (0, f"{new} is the newest key and seals already: nothing was done\n")
    early = wait_for(lambda: [said for said in [rotate("--retire")] if "yet" not in said.err], SECONDS)[0]
    assert early.status == 5
    for line, name in zip(early.err.splitlines()[1:3], "ab", strict=True):
        assert line.startswith(f"{name} has sealed with {new} for ")
        assert line.endswith(" s of 180: what it sealed before is still under way")
    for each in replicas:
        each.ahead = 200.0
    wait_for(lambda: rotate("--retire", "--dry-run").status == 0, SECONDS)
    with under_way(first, second):
        assert rotate("--retire").status == 0
        wait_for(lambda: first.opens() == second.opens() == [new], SECONDS)
    shown = run("cluster", "keys", "show", "--output", "json", "--config", second.file)
    keys = {each["id"]: each for each in shown.json["keys"]}
    assert (keys[new]["does"], keys[new]["replicas"]) == ("seals, opens", ["a", "b"])
    assert old not in keys
    secrets = [line.partition("#")[0].strip() for line in (first.folder / SEALING).read_text().splitlines()[1:]]
    assert not any(secret in shown.out for secret in secrets)


def changed(admin: Admin, **data: str) -> None:
    """Put another text in the place of one in the Secret."""
    found = admin("GET", SECRET).json()
    found["data"] |= data
    assert admin("PUT", SECRET, found).status_code == 200


def test_what_cannot_be_told_or_believed_leaves_in_use_what_was(
    replicas: tuple[Replica, Replica], run: Run, own: Cluster, admin: Admin, kubectl: Kubectl
) -> None:
    first, second = replicas
    files = {path.name: path.read_bytes() for path in first.folder.iterdir() if path.name != RECORD}
    kept = admin("GET", SECRET).json()["data"]

    def says(words: str) -> None:
        for each in replicas:
            wait_for(partial(says_it, each, words), SECONDS)
            assert {path.name: path.read_bytes() for path in each.folder.iterdir() if path.name != RECORD} == files
        with under_way(first, second):
            pass

    changed(admin, **{SEALING: base64.b64encode(b"not a key\n").decode()})
    says("sealing.keys of the Secret netboot/netboot-keys:1: not a sealing key (32 bytes in base64)")
    other = base64.b64encode(base64.b64encode(b"k" * 32)).decode()
    changed(admin, **{SEALING: other})
    says(f"its sealing.keys lacks {first.seals()}, which seals here, and does not say that it is to go")
    changed(admin, **{SEALING: kept[SEALING], BOOT_IDS: base64.b64encode(b"x" * 32).decode()})
    says("its boot-id.key lacks ")
    changed(admin, **kept)
    in_order(*replicas)
    admin("DELETE", SECRET)
    says("there is no Secret netboot/netboot-keys: `netboot cluster keys push`")
    pushed = run("cluster", "keys", "push", "--admin-kubeconfig", own.admin, "--config", second.file)
    assert pushed.status == 0, "of the second's own files, which are others"
    says("and does not say that it is to go: to put back what it had, delete it, then")
    back = ("cluster", "keys", "push", "--in-use", "--admin-kubeconfig", own.admin, "--config", second.file)
    refused = run(*back)
    assert refused.status == 1
    assert refused.err.startswith(
        "Error: the Secret netboot/netboot-keys has other keys than this host's files, and was"
    )
    admin("DELETE", SECRET)
    assert run(*back).status == 0
    in_order(*replicas)
    binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/netboot/rolebindings/netboot-keys"
    admin("DELETE", binding)
    for each in replicas:
        each.controller.stop()
        each.followed()
    says("the rights are in deploy/keys: `netboot cluster manifests --keys | kubectl apply -f -`")
    kubectl("apply", "-f", str(kubectl.folder / "keys.yaml"))
    in_order(*replicas)


def test_the_account_sees_this_secret_and_no_other(
    tmp_path: Path, run: Run, admin: Admin, own: Cluster, kubectl: Kubectl
) -> None:
    make_join_site(tmp_path)
    configured(tmp_path / "netboot.yaml", "a")
    accounts(run, tmp_path / "netboot.yaml", own, kubectl)
    applied(admin, SECRET, {"kind": "Secret", "metadata": {"name": "netboot-keys", "namespace": "netboot"}})
    token = json.loads((tmp_path / "secrets" / "keys.kubeconfig").read_text())["users"][0]["user"]["token"]
    secrets, maps = "/api/v1/namespaces/netboot/secrets", "/api/v1/namespaces/netboot/configmaps"
    one = f"{secrets}?fieldSelector=metadata.name%3Dnetboot-keys"
    with closing(Admin(own, token)) as account:
        asked = {
            ("GET", one): 200,
            ("GET", secrets): 403,
            ("GET", f"{secrets}?fieldSelector=metadata.name%3Dother"): 403,
            ("DELETE", SECRET): 403,
            ("PATCH", SECRET): 403,
            ("GET", f"{maps}/netboot-keys-in-use"): 200,
            ("GET", maps): 403,
            ("DELETE", f"{maps}/netboot-keys-in-use"): 403,
            ("GET", "/api/v1/namespaces/kube-system/secrets"): 403,
        }
        said = {ask: account(*ask, {} if ask[0] == "PATCH" else None).status_code for ask in asked}
    assert said == asked


def served(root: Path, replica: str, store: Path | None) -> Config:
    config = make_site(root, workers=1)
    if store is None:
        Store(config.store).set_channel("stable", add_image(config))
    else:
        shutil.rmtree(root)
        shutil.copytree(store, root, ignore=shutil.ignore_patterns("data", "out*", "shared-keys"))
        text, first = (root / "netboot.yaml").read_text(), load_config(store / "netboot.yaml")
        for address, port in zip((first.provisioning.listen, first.management.listen), free_ports(), strict=True):
            text = text.replace(f":{address.port}", f":{port}")
        (root / "netboot.yaml").write_text(text.partition("keys_kubernetes")[0])
    configured(root / "netboot.yaml", replica)
    return load_config(root / "netboot.yaml")


def ended(service: Service) -> None:
    service.machines.close()
    if service.process is not None and service.process.poll() is None:
        service.kill()


def runs_well(service: Service) -> bool:
    return bool(detail(service)["ok"] and service.readyz()["ready"])


def boots(service: Service) -> bool:
    return service.outcome(MAC1) == "boot"


def detail(service: Service) -> Any:
    return service.readyz()["details"].get("keys", {"ok": False, "message": ""})


def test_services_boot_by_the_keys_of_the_secret_also_without_the_api_server(
    tmp_path: Path, run: Run, own: Cluster, admin: Admin, kubectl: Kubectl
) -> None:
    one = served(tmp_path / "one", "one", None)
    (tmp_path / "one" / "data").mkdir(exist_ok=True)
    (tmp_path / "one" / "data" / "boot-id.key").write_bytes(b"o" * 32)
    accounts(run, tmp_path / "one" / "netboot.yaml", own, kubectl)
    two = served(tmp_path / "two", "two", tmp_path / "one")
    roots = (tmp_path / "one", tmp_path / "two")
    first, second = (Service(config, root / "netboot.yaml") for config, root in zip((one, two), roots, strict=True))
    with ExitStack() as running, ThreadPoolExecutor(2) as pool:
        for each in (first, second):
            running.callback(ended, each)
        starting = [pool.submit(each.start) for each in (first, second)]  # until all processes are ready
        wait_for(lambda: "there are no keys yet, and none are made up" in detail(first)["message"], START_SECONDS)
        assert first.readyz()["ready"] is False
        assert not (roots[0] / "shared-keys" / BOOT_IDS).exists()
        pushed = first.netboot("cluster", "keys", "push", "--admin-kubeconfig", str(own.admin))
        assert pushed.returncode == 0, pushed.stderr
        for each in (first, second):
            wait_for(partial(runs_well, each), SECONDS)
        for start in starting:
            start.result()
        boot = first.boot(MAC1)
        assert second.post(boot, MAC1, "InitrdStarted") == 204, "at the other"
        assert "netboot_keys_age_seconds " in first.text("/metrics")
        with apiserver_down(own, admin):
            for each in (first, second):
                each.kill()
                each.start()
                wait_for(partial(boots, each), SECONDS)
            assert first.post(boot, MAC1, "ImageFetched") == 204
            assert second.post(first.boot(MAC1), MAC1, "InitrdStarted") == 204
            said = wait_for(
                lambda: [said for said in [detail(second)] if "in use is what there was" in said["message"]]
            )
            assert said[0]["ok"] is False
            wait_for(lambda: second.readyz()["ready"], SECONDS)
            assert "`netboot cluster kubeconfigs --keys` makes a new token" in said[0]["remedy"]
        for each in (first, second):
            wait_for(partial(runs_well, each), SECONDS)
        mode = (tmp_path / "two" / "shared-keys" / BOOT_IDS).stat().st_mode & 0o777
        assert (mode, (tmp_path / "two" / "shared-keys").stat().st_mode & 0o777) == (0o600, 0o700)
