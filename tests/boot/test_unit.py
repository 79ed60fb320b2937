"""The Debian package as an operator installs it, its unit started by systemd as the first process of a machine, with
somebody inside its processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.site import run_netboot
from lab.work import ROOT
from tests import deb
from tests.boot.data_centre import BuiltImage
from tests.boot.systemd_machine import BROUGHT, enable, installed, switched_on, write
from tests.boot.unit_inside import ACCOUNT, APISERVER, INTRUDER
from tests.sites import JOINING, add_image, make_site
from tests.sockets.join_site import CLUSTERS, write_kubeconfigs
from tests.walls.attempts import ALL, ALLOWED, NAMES, done, odd
from tests.walls.site import outside, write_secrets

pytestmark = pytest.mark.boot
SECONDS = 1800.0
"""For all that is done inside, in software emulation, on a machine that is busy with other things."""
_OF_NODES = ("join.service", "images.service", "health.service", "health.timer", "switched.service", "booted.service")
MASKED = ["containerd.service", "systemd-networkd.service", *(f"netboot-{name}" for name in _OF_NODES)]
"""Of the image, which is a node's; this machine is none."""
CARRIED = ["tests/__init__.py", "tests/processes.py", "tests/walls", "tests/intruder", "tests/boot/__init__.py"]
CARRIED += ["tests/boot/unit_inside.py", "lab/__init__.py", "lab/errors.py", "lab/polling.py"]
INSIDE = Path("/srv/break-in")
NOBODY = 5000
"""A port that nobody listens on."""
CONFIGURED = CLUSTERS + outside(APISERVER, NOBODY)
CONFIGURED += "watchdog: {server_seconds: 600}\n"  # while somebody is inside, the loop of a process stands still
OPERATOR = f"""\
cd {BROUGHT}
dpkg -i netboot_*.deb
netboot init /etc/netboot --force --state /var/lib/netboot --owner netboot \\
  --url http://127.0.0.1:8080 --join-url https://127.0.0.1:8443
sed -i 's/^  # workers: 2 .*/  workers: 1/' /etc/netboot/netboot.yaml
cat more.yaml >>/etc/netboot/netboot.yaml
cp site.yaml /etc/netboot/inventory/site.yaml
install -o netboot -g netboot -m 0600 secrets/* /etc/netboot/secrets
cp keys/*.pub /etc/netboot/keys
netboot image import images
netboot config check
test -z "$(dpkg --verify netboot)"
"""
"""What docs/install.md says. The image was built elsewhere: building one here would take longer than all the rest."""
BREAKER = f"install -d -o {ACCOUNT} -g {ACCOUNT} {INTRUDER}\n"
DROP_IN = f"""\
[Service]
Environment=PYTHONPATH={INSIDE}/tests/intruder NETBOOT_TEST_INTRUDER={INTRUDER}
"""
BREAK_IN = f"""\
[Unit]
After=netboot.service
[Service]
Type=exec
WorkingDirectory={INSIDE}
Environment=PYTHONPATH={INSIDE}
ExecStart=/usr/bin/python3 -m tests.boot.unit_inside /dev/ttyS1
"""
WITHOUT_PORTS = {kind: {"connect other"} for kind in ("management", "join", "approver", "nodes", "pause", "traces")}
"""What Debian 12's Linux 6.1 leaves open beside the table: Landlock knows no ports before 6.7 …"""
WITHOUT_SCOPES = {
    kind: {"signal neighbour", "signal supervisor", "abstract socket"} for kind in ("management", "join")
} | {kind: {"abstract socket"} for kind in ("approver", "nodes", "fetcher", "pause", "traces")}
"""… nor signals and abstract sockets before 6.12."""
HIDDEN = {"environ neighbour": "ENOENT", "environ supervisor": "ENOENT"}
"""The unit shows a process nothing of others in /proc."""


@pytest.fixture(scope="module")
def found(built_node: BuiltImage, work: Path) -> Iterator[dict[str, Any]]:
    """What was found inside, by name."""
    folder = work / "unit"
    shutil.rmtree(folder, ignore_errors=True)  # of a first try that was too late
    tree = folder / "tree"
    brought(folder / "brought")
    inside = tree / INSIDE.relative_to("/")
    for name in CARRIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, inside / name)
    imports_there("tests.boot.unit_inside", inside)
    write(tree / "etc/systemd/system/netboot.service.d/break-in.conf", DROP_IN)
    write(tree / "etc/systemd/system/break-in.service", BREAK_IN)
    enable(tree, "break-in.service")
    installed(folder, built_node, OPERATOR + BREAKER)
    with switched_on(folder, built_node, MASKED) as machine:
        machine.output.wait_for(r'^\{"(end|failed)": .*\n', SECONDS)
        lines = machine.output.text.splitlines()
    for name in ("tree", "brought"):
        shutil.rmtree(folder / name)
    yield {name: what for line in lines if line.startswith("{") for name, what in json.loads(line).items()}


def brought(folder: Path) -> None:
    """What an operator has: the package, an image of elsewhere and who signed it, accounts of a cluster, credentials,
    and what is to be written into the site's files."""
    elsewhere = folder.with_name("elsewhere")
    digest = add_image(make_site(elsewhere))
    (folder / "secrets").mkdir(parents=True)
    deb.package(folder)
    run_netboot(["image", "export", digest, str(folder / "images")], elsewhere / "netboot.yaml")
    shutil.copytree(elsewhere / "keys", folder / "keys", ignore=shutil.ignore_patterns("*.key"))
    write_kubeconfigs(folder / "secrets", APISERVER)
    write_secrets(folder / "secrets")
    write(folder / "more.yaml", CONFIGURED)
    write(folder / "site.yaml", JOINING)
    shutil.rmtree(elsewhere)


def imports_there(module: str, folder: Path) -> None:
    """Fails at once where `CARRIED` lacks what a module needs: in the machine that would be half an hour of silence."""
    argv, env = [sys.executable, "-c", f"import {module}"], {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_whatever_runs_in_a_process_of_the_unit_can_do_what_it_needs_and_nothing_else(found: dict[str, Any]) -> None:
    assert found.get("failed") is None
    assert NAMES.keys() - found == {"resources", "shipper", "keys"}  # they run only where it is objects
    for kind in NAMES.keys() & found:
        beyond = WITHOUT_PORTS.get(kind, set()) | WITHOUT_SCOPES.get(kind, set())
        assert (kind, done(found[kind])) == (kind, ALLOWED[kind] | ALL | beyond)
        assert odd(found[kind]) == HIDDEN


def test_a_boot_server_of_the_unit_has_no_privilege_and_no_way_to_one(found: dict[str, Any]) -> None:
    assert 100 <= found["uid"] < 1000, "of a system's account"
    status = {name: found["status"][name] for name in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
    assert status == {
        "Uid": "\t".join([str(found["uid"])] * 4),
        "CapEff": "0000000000000000",
        "CapBnd": "0000000000000000",
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }


def test_the_unit_is_the_packages_and_nothing_of_it_is_changed_but_its_environment(found: dict[str, Any]) -> None:
    assert found["unit"] == [
        "/usr/lib/systemd/system/netboot.service",
        "/etc/systemd/system/netboot.service.d/break-in.conf",
    ]


def test_systemd_hears_that_the_unit_is_ready_and_that_it_goes_on(found: dict[str, Any]) -> None:
    assert found["verified"] == []
    assert float(found["exposure"].partition(": ")[2].split()[0]) <= 1.5, "systemd's own reckoning, of 10"
    assert found["asked"] == {
        "Type": "notify",
        "NotifyAccess": "main",
        "WatchdogUSec": "30s",
        "NoNewPrivileges": "yes",
        "User": "netboot",
        "ProtectSystem": "strict",
        "NRestarts": "0",
        "Result": "success",
    }
    assert found["reloaded"] == ""
    assert found["watchdog"] == {"left": [], "same": False, "restarts": "1"}
    assert found["stopped"] == ["inactive", "success"]


def test_addresses_that_the_unit_denies_are_denied_to_who_may_connect_anywhere(found: dict[str, Any]) -> None:
    before, after = found["addresses"]
    assert before == {"here": "done", "elsewhere": "done"}
    assert after == {"here": "done", "elsewhere": "timed out"}  # what is denied is dropped
