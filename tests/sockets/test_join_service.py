"""Join as processes of a whole `netboot serve`: started, restarted, stopped; boots go on whatever its clusters do."""

import http.client
import json
import os
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.config import load_config
from netboot.lifecycle.bootid import mint, minted_ms
from netboot.lifecycle.state import CLAIMS_KEPT
from netboot.status.supervisor import ProcessStatus, SupervisorStatus
from netboot.stores import bootkey
from netboot.stores.status import StatusFolder
from tests.processes import wait_for
from tests.sites import add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.service import Service, serving
from tests.soft_tpm import Machine

MACHINE = Machine("")
INVENTORY = f"""\
machines:
  - name: gpu-001
    match: {{macs: ["52:54:00:00:00:01"], ek_sha256: {MACHINE.ek_sha256}}}
    profile: compute
profiles: [{{name: compute, channel: stable, pcrs: none}}]
channels: [{{name: stable}}]
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A site whose cluster's apiserver does not answer."""
    root, [nobody] = tmp_path_factory.mktemp("serve"), free_ports(1)
    file = make_whole_site(root, nobody, inventory=INVENTORY, workers=1, join_workers=2)
    config = load_config(file)
    pinned = INVENTORY.replace("{name: stable}", f"{{name: stable, image: {add_image(config)}}}")
    (root / "inventory" / "site.yaml").write_text(pinned)
    with serving(config, file) as made:
        yield made


def ask(service: Service, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Ask whichever process the kernel chooses."""
    join = service.config.join
    assert join is not None
    context = ssl.create_default_context(cafile=str(join.authorities))
    connection = http.client.HTTPSConnection("127.0.0.1", join.listen.port, context=context, timeout=60)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def processes(service: Service) -> dict[str, ProcessStatus]:
    status = StatusFolder(service.config.data / "status").read("supervisor", SupervisorStatus)
    return status.processes if status is not None else {}


def test_join_has_processes_of_its_own_and_says_what_it_waits_for(service: Service) -> None:
    assert {"join-0", "join-1"} <= set(processes(service))
    join = service.config.join
    assert join is not None
    assert f"join (machines, TLS)      {join.listen}, reached as {join.url}" in service.out.read_text()
    assert ask(service, "GET", "/healthz") == (200, {"healthy": True})
    status, said = ask(service, "GET", "/readyz")
    assert (status, said["ready"]) == (503, False)
    assert said["problems"][0].startswith("cluster default cannot be used: ")
    MACHINE.boot = service.boot("52:54:00:00:00:01")
    status, said = ask(service, "POST", "/v1/join/hello", MACHINE.hello())
    assert (status, said["error"]["code"]) == (503, "cluster-unavailable")


def test_machines_boot_while_no_cluster_answers(service: Service) -> None:

    def told() -> Any:
        said = service.readyz()
        detail = said["details"].get("join-1", {"message": ""})
        return said if said["ready"] and detail["message"].startswith("cluster default cannot be used: ") else None

    assert wait_for(told)["degraded"]
    assert service.outcome("52:54:00:00:00:01") == "boot"


def test_a_boot_that_this_service_did_not_mint_is_refused(service: Service) -> None:
    MACHINE.boot = "01a0c450-6fe8-8000-8001-000000000000"
    status, said = ask(service, "POST", "/v1/join/hello", MACHINE.hello())
    assert (status, said["error"]["code"]) == (403, "refused")
    assert said["error"]["message"].startswith(f"{MACHINE.boot} is not a boot of gpu-001")


def test_a_boot_of_an_image_that_was_revoked_since_is_refused(service: Service) -> None:
    """By what the state says of its script, which a join process reads within its walls; where somebody had that
    forgotten, and of a script that another host of the site served, by the boot's id."""
    forgotten = service.boot("52:54:00:00:00:01")
    wait_for(lambda: service.api(f"/v1/boots/{forgotten}").get("machine"))
    for _ in range(CLAIMS_KEPT):
        MACHINE.boot = service.boot("52:54:00:00:00:01")
    wait_for(lambda: "code" in service.api(f"/v1/boots/{forgotten}"))
    wait_for(lambda: service.api(f"/v1/boots/{MACHINE.boot}").get("machine"))
    image = service.api("/v1/channels/stable")["image"]
    key = bootkey.load_or_create(bootkey.file_of(service.config))
    of_revoked, of_another = (mint(key, "gpu-001", each, minted_ms(forgotten), 1) for each in (image, "0" * 64))
    done = service.netboot("image", "revoke", image, "--reason", "CVE-2026-1234", "--force-nothing-boots")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: service.readyz()["details"]["images"].get("unusable", {}).get("stable"))
    for boot, by in ((MACHINE.boot, "on record"), (forgotten, "by its id"), (of_revoked, "by its id")):
        status, said = ask(service, "POST", "/v1/join/hello", MACHINE.hello(boot=boot))
        assert (status, said["error"]["code"]) == (403, "refused"), by
        assert said["error"]["message"] == "the image that gpu-001 booted is revoked: reboot it"
        why = f"gpu-001 does not join: its boot {boot} has image {image} ({by}), which is revoked"
        wait_for_log(service, why)
    status, said = ask(service, "POST", "/v1/join/hello", MACHINE.hello(boot=of_another))
    assert (status, said["error"]["code"]) == (503, "cluster-unavailable"), "no rule forbids it"
    assert service.netboot("image", "unrevoke", image).returncode == 0
    wait_for(lambda: service.outcome("52:54:00:00:00:01") == "boot")  # may be from before it was revoked

    def hello() -> tuple[int, str]:
        status, said = ask(service, "POST", "/v1/join/hello", MACHINE.hello())
        return status, said["error"]["code"]

    wait_for(lambda: hello() == (503, "cluster-unavailable"))


def wait_for_log(service: Service, words: str) -> None:
    wait_for(lambda: words in service.log)


def test_a_join_process_that_dies_is_started_again_and_its_journal_followed(service: Service) -> None:
    before = processes(service)["join-0"].pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: processes(service)["join-0"].ready and processes(service)["join-0"].pid != before)
    assert processes(service)["join-0"].restarts == 1
    assert ask(service, "GET", "/healthz")[0] == 200
    folder = Path(service.config.data / "journal")
    wait_for(lambda: {"join-0.db", "join-1.db", "boot-0.db"} <= {path.name for path in folder.glob("*.db")})


def test_the_stop_is_clean(service: Service) -> None:
    assert service.stop() == 0
    assert "Traceback" not in service.log
    key = (service.file.parent / "secrets" / "sealing.keys").read_text().splitlines()[1].split()[0]
    assert key not in service.log
