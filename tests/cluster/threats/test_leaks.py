"""Nothing secret is where others read: logs, the audit log, the process list, scripts, files, what operators see."""

import base64
import re
from pathlib import Path

import pytest
import requests

from netboot.stores.sealing import read_keys
from tests.cluster.threats.live_site import CSRS, LEASES, LiveSite
from tests.files import contents
from tests.kubelets import client
from tests.processes import wait_for
from tests.sites import TOKEN

pytestmark = pytest.mark.cluster


def forms(secret: bytes) -> set[bytes]:
    """A value as somebody might have written it."""
    text = {secret, base64.b64encode(secret), base64.urlsafe_b64encode(secret), secret.hex().encode()}
    return {one.rstrip(b"=") for one in text}


def secrets_of(site: LiveSite) -> dict[str, bytes]:
    """By what each is."""
    config = site.service.config
    assert config.join is not None
    found = {"the operator's token": TOKEN.encode()}
    for kind, path in (("sealing", config.join.sealing_keys), ("nonce", config.join.nonce_keys)):
        for number, key in enumerate(read_keys(path).keys):
            found[f"{kind} key {number}"] = key.material
    for name in ("issuer", "approver", "nodes"):
        text = getattr(config.clusters["default"], name).read_text()
        [token] = re.findall(r'"token": "([^"]+)"', text)
        found[f"the {name}'s token"] = token.encode()
    for token in sorted(site.secrets):
        found[f"the secret of token {token[:6]}"] = token.partition(".")[2].encode()
    pem = config.join.key.read_text().split("-----")[2]
    found["join's TLS key"] = "".join(pem.split()).encode()[30:90]
    return found


def of_processes(site: LiveSite) -> dict[str, bytes]:
    """Command lines and environments. Raises OSError: one ended meanwhile."""
    assert site.service.process is not None
    pids = site.service.pids() | {site.service.process.pid}
    files = [Path(f"/proc/{pid}/{name}") for pid in pids for name in ("cmdline", "environ")]
    return {str(path): path.read_bytes() for path in files}


def leaks(site: LiveSite, where: str, data: bytes) -> list[str]:
    secrets = secrets_of(site).items()
    return [f"{what} in {where}" for what, secret in secrets if any(form in data for form in forms(secret))]


def test_the_search_finds_what_is_there(site: LiveSite) -> None:
    token = site.prove(site.power_on(site.fresh()))["token"]
    secret = f"the secret of token {token[:6]}"
    assert leaks(site, "a line", f"x {token} y".encode()) == [f"{secret} in a line"]
    assert leaks(site, "a line", base64.b64encode(token[7:].encode())) == [f"{secret} in a line"]
    assert len(secrets_of(site)) >= 8


def test_nothing_secret_is_left_behind(site: LiveSite, tmp_path: Path) -> None:
    """A machine joins to the end, one is refused, one boots: then the very values are looked for everywhere."""
    chassis, stolen = site.fresh(), site.fresh()
    machine = site.power_on(chassis)
    told = site.agent(tmp_path, machine)
    said = site.prove(site.power_on(stolen))
    assert site.decision(site.ask(site.bearer(said["token"]), client(chassis.name)))[0] == "Denied"
    assert site.service.netboot("token", "list").returncode == 0
    wait_for(lambda: {"TokenIssued", "CSRApproved"} <= set(site.phases(machine.boot)), 180)
    reached = {one["phase"]: one["detail"] for one in site.service.api(f"/v1/boots/{machine.boot}")["reached"]}
    assert reached["TokenIssued"].split()[1].rstrip(",") in {token[:6] for token in site.secrets}, "the agent's own"

    service, cluster, seen = site.service, site.cluster.folder, dict[str, bytes]()
    seen["the service's log"] = service.log.encode() + service.out.read_bytes()
    seen["the agent's lines"] = "\n".join(told.lines).encode()
    seen["the audit log"] = (cluster / "audit.log").read_bytes()
    seen["the apiserver's log"] = (cluster / "kube-apiserver.log").read_bytes()
    seen["the controller-manager's log"] = (cluster / "kube-controller-manager.log").read_bytes()
    seen |= wait_for(lambda: of_processes(site))
    with requests.Session() as session:
        script = session.get(f"{service.provisioning}/v1/boot", params={"mac": chassis.mac}, timeout=60)
    assert b"netboot.boot=" in script.content, "with the kernel's command line"
    seen["the boot script"] = script.content + str(script.headers).encode()
    seen["the site bundle"] = b"".join(contents(service.config.store / "site").values())
    for path, data in contents(service.config.data).items():
        seen[f"data/{path.relative_to(service.config.data)}"] = data
    for page in ("/metrics", "/readyz"):
        seen[page] = service.text(page).encode()
    for command in (("token", "list"), ("machine", "show", chassis.name), ("boot", "show", machine.boot), ("doctor",)):
        done = service.netboot(*command)
        seen[f"netboot {command[0]}"] = (done.stdout + done.stderr).encode()
    seen["the machine's memory"] = b"".join(contents(tmp_path).values())
    seen["the certificate requests"] = site.admin("GET", CSRS).content
    seen["the Leases"] = site.admin("GET", LEASES).content

    empty = {name for name, data in seen.items() if not data}
    assert not empty & {"the service's log", "the audit log", "the apiserver's log", "the boot script", "the Leases"}
    assert not empty & {"the site bundle", "the machine's memory"}
    assert [leak for where, data in seen.items() for leak in leaks(site, where, data)] == []
