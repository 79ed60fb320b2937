"""The assurance level `nonce`: the operator's window, the script's nonce, join, the approver, a real control plane."""

import base64
import contextlib
import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config import load_config
from netboot.join.ports import MARK
from netboot.join.state import Nonce, seal_nonce
from netboot.status.join import JoinStatus
from netboot.stores.sealing import NONCES, read_keys
from netboot.stores.status import StatusFolder
from tests.agents import Told
from tests.files import contents
from tests.nonces import nonce_text
from tests.processes import wait_for
from tests.sites import add_image, free_ports, make_site
from tests.sockets.join_site import fill_join
from tests.sockets.service import Service, serving
from tests.soft_tpm import Machine, text

pytestmark = pytest.mark.cluster
NODES = "/api/v1/nodes"
TPM = Machine("")
MACHINES = ("owner-1", "owner-2", "has-tpm")


def inventory(at_home: str) -> str:
    """What is declared; `at_home`: the machine whose address is 127.0.0.1, from where these tests ask."""
    entries = []
    for number, name in enumerate(MACHINES, 1):
        match: dict[str, object] = {"macs": [f"52:54:00:00:00:0{number}"], "serial": f"S{number}"}
        if name == "has-tpm":
            match["ek_sha256"] = TPM.ek_sha256
        node = {"addresses": ["127.0.0.1" if name == at_home else f"127.0.1.{number}"]}
        entries.append({"name": name, "match": match, "identity": "nonce", "node": node, "profile": "compute"})
    profiles = [{"name": "compute", "channel": "stable", "pcrs": "none"}]
    return yaml.safe_dump({"machines": entries, "profiles": profiles})


@pytest.fixture(scope="module")
def service(
    control_plane: Cluster, accounts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A whole service; its cluster is the real one."""
    root = tmp_path_factory.mktemp("nonce")
    config = make_site(root, workers=1, inventory="machines: []\n")
    (port,) = free_ports(1)
    cluster = {"endpoints": [control_plane.url], "authority": str(control_plane.folder / "ca.crt")}
    cluster |= {role: str(path) for role, path in accounts.items()}
    join = {"listen": f"127.0.0.1:{port}", "url": f"https://127.0.0.1:{port}", "workers": 2}
    file = root / "netboot.yaml"
    file.write_text(file.read_text() + yaml.safe_dump({"join": join, "clusters": {"default": cluster}}))
    fill_join(root)
    channel = f"channels: [{{name: stable, image: {add_image(config)}}}]\n"
    (root / "inventory" / "channels.yaml").write_text(channel)
    (root / "inventory" / "site.yaml").write_text(inventory("owner-1"))
    with serving(load_config(file), file) as made:
        wait_for(lambda: post(made, "/v1/join/hello", {})[0] == 400)
        wait_for(lambda: fit(made, "join-0") and fit(made, "join-1"))  # for either may be asked
        yield made


def fit(service: Service, join: str) -> bool:
    """Whether that join server has found the cluster fit: each looks by itself."""
    status = StatusFolder(service.config.data / "status").read(join, JoinStatus)
    return status is not None and status.clusters["default"].ok


def post(service: Service, path: str, body: Any, source: str = "127.0.0.1") -> tuple[int, Any]:
    """Post to join from an address of loopback."""
    join = service.config.join
    assert join is not None
    context = ssl.create_default_context(cafile=str(join.authorities))
    connection = http.client.HTTPSConnection(
        "127.0.0.1", join.listen.port, context=context, timeout=60, source_address=(source, 0)
    )
    try:
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def moves_in(service: Service, name: str) -> None:
    """From now on that machine has the address from where these tests ask."""
    (service.config.inventory / "site.yaml").write_text(inventory(name))
    wait_for(lambda: service.api(f"/v1/machines/{name}")["node"]["addresses"] == ["127.0.0.1"])


def refusal(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["error"]["message"]


def join(service: Service, machine: Machine) -> tuple[int, Any]:
    """Both steps; the answer of the last one that was taken."""
    answer = post(service, "/v1/join/hello", machine.hello())
    return post(service, "/v1/join/attest", machine.attest(answer[1])) if answer[0] == 200 else answer


def script(service: Service, mac: str) -> str:
    return service.machines.get(f"{service.provisioning}/v1/boot", params={"mac": mac}, timeout=60).text


def booted(service: Service, name: str, mac: str) -> tuple[str, str]:
    """Open a window, wait for the script that brings a nonce: the boot and its nonce, as iPXE gets them."""
    opened = service.netboot("token", "issue", "--machine", name, "--reason", "it has no TPM")
    assert opened.returncode == 0, opened.stderr
    found = wait_for(lambda: re.search(r"^initrd .*--name nonce (\S+)", script(service, mac), re.MULTILINE))
    url = found[1].replace("${netX/mac:hexhyp}", mac.replace(":", "-"))
    answer = service.machines.get(url, timeout=60)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    boot = re.search(r"/v1/boots/([0-9a-f-]{36})/", url)
    assert boot is not None
    assert nonce_text(answer.content) not in script(service, mac)
    return boot[1], nonce_text(answer.content)


def put(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)


def machine_root(root: Path, service: Service, boot: str, nonce: str, mac: str, serial: str) -> Path:
    """What firmware, initrd and boot script leave on a machine without a TPM."""
    report = service.provisioning
    put(root, "run/netboot/boot.env", f"BOOT={boot}\nIMAGE={'a' * 64}\nREPORT={report}\nMAC={mac}\nNAME=x\n")
    put(root, "run/netboot/site.json", service.config.site_bundle(issued=1_700_000_000).to_bytes().decode())
    put(root, "run/netboot/nonce", f"{nonce}\n")
    put(root, "sys/class/net/eth0/address", f"{mac}\n")
    put(root, "sys/class/net/eth0/type", "1\n")
    put(root, "sys/class/net/eth0/device/vendor", "0x1af4\n")
    put(root, "sys/class/dmi/id/product_serial", f"{serial}\n")
    return root


class Patient(Told):
    """Real pauses, short ones: the apiserver has to learn of each token."""

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        time.sleep(min(seconds, 0.5))


def no_tpm(_root: Path) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def alerts(service: Service, name: str) -> list[str]:
    return [one["said"] for one in service.api(f"/v1/machines/{name}")["alerts"]]


def register(root: Path, name: str) -> requests.Response:
    """Create the Node as its kubelet does with the files that the agent left."""
    config = yaml.safe_load((root / "etc/kubernetes/kubelet.kubeconfig").read_text())
    taints = json.loads((root / "etc/kubernetes/kubelet.d/20-netboot.conf").read_text())["registerWithTaints"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": MARK}, "spec": {"taints": taints}}
    pair = str(root / "var/lib/kubelet/pki/kubelet-client-current.pem")
    with requests.Session() as session:
        session.trust_env, session.verify, session.cert = False, str(root / "etc/kubernetes/pki/ca.crt"), pair
        return session.post(config["clusters"][0]["cluster"]["server"] + NODES, json=node, timeout=60)


def make_ready(as_admin: Admin, name: str) -> bool:
    """What its kubelet would say; False where a controller wrote meanwhile."""
    node = as_admin("GET", f"{NODES}/{name}").json()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    ready["lastHeartbeatTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return as_admin("PUT", f"{NODES}/{name}/status", node | {"status": {"conditions": [ready]}}).status_code == 200


class EnoughError(Exception):
    """The agent would wait now."""


def test_the_owner_joins_tainted_a_thief_is_an_alert_and_a_ready_node_stays(
    service: Service, as_admin: Admin, tmp_path: Path
) -> None:
    mac = "52:54:00:00:00:01"
    boot, nonce = booted(service, "owner-1", mac)
    thief = Machine(boot, (mac,), "S1", tpm=False, nonce=nonce)
    for change, words in (
        ({"serial": "S9"}, "owner-1 must show the serial number that the inventory gives it, to use a boot window"),
        ({"macs": ("52:54:00:00:00:77",), "serial": "S1"}, "owner-1 is not known by any MAC that this machine has"),
    ):
        other = Machine(**({"boot": boot, "macs": (mac,), "tpm": False, "nonce": nonce} | change))  # type: ignore[arg-type]
        assert refusal(post(service, "/v1/join/hello", other.hello())) == (403, words)
    elsewhere = post(service, "/v1/join/hello", thief.hello(), source="127.0.0.2")
    assert refusal(elsewhere) == (403, "127.0.0.2 is not an address of owner-1 (node.addresses in the inventory)")
    begun = post(service, "/v1/join/hello", thief.hello())
    assert (begun[0], begun[1]["assurance"]) == (200, "nonce")

    root, told = machine_root(tmp_path, service, boot, nonce, mac, "S1"), Patient()
    told.agent(root, open_tpm=no_tpm).run()
    assert told.lines[-1] == "joined as owner-1; the kubelet may start", told.lines
    taints = "netboot.dev/unchecked:NoExecute,netboot.dev/unattested:NoSchedule"
    assert f"NODE_TAINTS={taints}\n" in (root / "run/netboot/kubelet.env").read_text()
    node = register(root, "owner-1")
    assert node.status_code == 201, node.text
    assert [one["key"] for one in node.json()["spec"]["taints"]][:2] == [
        "netboot.dev/unchecked",
        "netboot.dev/unattested",
    ]

    words = "the boot window of owner-1 is closed, or another key was first to use it: look which machine that was, "
    assert refusal(post(service, "/v1/join/attest", thief.attest(begun[1]))) == (409, words + "then open another")
    assert refusal(join(service, thief))[0] == 409
    (alert,) = alerts(service, "owner-1")
    assert alert.startswith(words)
    wait_for(lambda: f'msg="alert: {words}' in service.log)
    assert re.search(rf"(?m)^ALERT +\S.*{re.escape(words)}", service.netboot("machine", "show", "owner-1").stdout)
    assert service.api("/v1/machines/owner-1/enrolment")["enrolment"]["window"] is None
    wait_for(lambda: "nonce" not in script(service, mac))
    gone = f"{service.provisioning}/v1/boots/{boot}/nonce?machine=owner-1&mac={mac}"
    assert service.machines.get(gone, timeout=60).status_code == 404

    wait_for(lambda: make_ready(as_admin, "owner-1"))
    boot, nonce = booted(service, "owner-1", mac)
    late = Machine(boot, (mac,), "S1", tpm=False, nonce=nonce)
    wait_for(lambda: make_ready(as_admin, "owner-1"))  # still: of a kubelet that says nothing for 50 s it is not known
    words = "owner-1 is a Ready node: only a TPM can show that it is this machine that asks"
    assert refusal(join(service, late)) == (403, words)
    assert as_admin("DELETE", f"{NODES}/owner-1").status_code == 200
    assert join(service, late)[0] == 200


def test_where_a_thief_is_first_the_owner_is_refused_and_it_is_an_alert(service: Service, tmp_path: Path) -> None:
    mac = "52:54:00:00:00:02"
    moves_in(service, "owner-2")
    boot, nonce = booted(service, "owner-2", mac)
    assert join(service, Machine(boot, (mac,), "S2", tpm=False, nonce=nonce))[0] == 200

    class Impatient(Told):
        def pause(self, seconds: float) -> None:
            raise EnoughError

    root, told = machine_root(tmp_path, service, boot, nonce, mac, "S2"), Impatient()
    with pytest.raises(EnoughError):
        told.agent(root, open_tpm=no_tpm).run()
    assert "the boot window of owner-2 is closed, or another key was first to use it" in told.lines[-1]
    assert len(alerts(service, "owner-2")) == 1


def test_a_machine_with_a_tpm_on_record_joins_by_no_nonce(service: Service) -> None:
    mac = "52:54:00:00:00:03"
    moves_in(service, "has-tpm")
    refused = service.netboot("token", "issue", "--machine", "has-tpm")
    assert refused.returncode == 4
    assert "the inventory pins the TPM of has-tpm" in refused.stderr
    boot = service.boot(mac)
    assert "nonce" not in script(service, mac)
    keys = read_keys(service.file.parent / "secrets" / "nonce.keys", NONCES)
    made = Nonce(mac=mac, address="127.0.0.1", machine="has-tpm", window="w")
    nonce = text(seal_nonce(keys, "test", made, time.time_ns() // 1_000_000, os.urandom))
    status, words = refusal(join(service, Machine(boot, (mac,), "S3", tpm=False, nonce=nonce)))
    assert status == 403
    assert words.startswith("has-tpm has a TPM on record and never joins without it")


def test_a_nonce_is_in_no_log_and_no_file_of_the_service(service: Service) -> None:
    moves_in(service, "owner-2")
    boot, nonce = booted(service, "owner-2", "52:54:00:00:00:02")
    assert service.netboot("machine", "show", "owner-2").returncode == 0
    wait_for(lambda: boot in service.log)
    needles = [nonce[:40].encode(), base64.b64decode(nonce)[-32:]]
    written = contents(service.config.data)
    assert any("journal" in str(path) for path in written)
    written |= {path: path.read_bytes() for path in (service.out, service.out.with_suffix(".log"))}
    assert [path for path, data in written.items() if any(needle in data for needle in needles)] == []
