"""The Debian package on a host from nothing, whose systemd runs the service: installed, configured, upgraded, removed,
installed again, purged."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from lab import packages
from tests import deb
from tests.processes import wait_for
from tests.tools.deploy.systemd_host import PAUSE, SECONDS, Host, made, switched_on

pytestmark = pytest.mark.tools

INSTALL = "apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends"
INIT = "netboot init /etc/netboot --force --state /var/lib/netboot --owner netboot --url http://127.0.0.1:8080"
HINT = """\
netboot: not configured yet, so it does not start. Begin with:
  netboot init /etc/netboot --force --state /var/lib/netboot --owner netboot --url http://ADDRESS:8080"""
PAGE = """\
NETBOOT(1)                                   netboot                                   NETBOOT(1)

NAME
       netboot - Bring disk-less machines into a cluster: build images, serve them, follow every
       boot

SYNOPSIS
       netboot [OPTIONS] COMMAND [ARGS]..."""
"""As wide as `man` keeps none in its cache."""
WHATIS = "netboot-freeze (1)   - Freeze the fleet: nothing that acts by itself begins anything, until it ends"
OWNERS = """\
drwxr-x--- root:netboot /etc/netboot
-rw-r--r-- root:root /etc/netboot/.gitignore
drwxr-xr-x root:root /etc/netboot/inventory
-rw-r--r-- root:root /etc/netboot/inventory/site.yaml
drwxr-xr-x root:root /etc/netboot/keys
-rw-r--r-- root:root /etc/netboot/keys/ID.pub
-rw------- root:root /etc/netboot/keys/ID.key
-rw-r--r-- root:root /etc/netboot/keys/active
-rw-r--r-- root:root /etc/netboot/netboot.yaml
drwx------ netboot:netboot /etc/netboot/secrets
-rw------- netboot:netboot /etc/netboot/secrets/access.json
-rw------- netboot:netboot /etc/netboot/secrets/operator.token
drwxr-xr-x root:root /etc/netboot/tls
-rw-r--r-- root:root /etc/netboot/tls/ca.crt
-rw------- root:root /etc/netboot/tls/ca.key
drwxr-xr-x netboot:netboot /var/lib/netboot
drwxr-x--- netboot:netboot /var/lib/netboot/data
drwxr-xr-x netboot:netboot /var/lib/netboot/store"""
PURGED = """\
netboot: removing /etc/netboot (configuration, inventory and keys)
netboot: something of /etc/netboot is left
netboot: removing /var/lib/netboot (images and state)
netboot: removing the account netboot"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """With two versions of the package in /root."""
    folder = tmp_path_factory.mktemp("deb")
    first, tree = deb.package(folder), folder / "package/root"
    tree.parent.mkdir()
    subprocess.run(["dpkg-deb", "--raw-extract", str(first), str(tree)], check=True)
    second = packages.pack(tree, "0.2.0")
    made(folder / "root", "man-db")
    for package in (first, second):
        shutil.move(package, folder / "root/root" / package.name.replace("_", "-", 1).replace("_", ".", 1))
    shutil.rmtree(folder / "package")
    with switched_on(folder / "root") as host:
        yield host
    shutil.rmtree(folder)


def test_a_package_from_its_installation_to_its_purge(host: Host) -> None:
    installed(host)
    configured(host)
    what_root_writes_the_service_can_use(host)
    upgraded(host)
    removed_and_installed_again(host)
    purged(host)


def package(host: Host, version: str) -> str:
    (file,) = (host.root / "root").glob(f"netboot-{version}.*.deb")
    return f"/root/{file.name}"


def installed(host: Host) -> None:
    said = host.run(f"{INSTALL} {package(host, deb.VERSION)}")
    assert HINT in said
    assert host.run("netboot --version") == "netboot 0.1.0"
    assert host.run("systemctl is-enabled netboot") == "enabled"
    host.run("systemctl start netboot")
    assert host.run("systemctl is-active netboot", 3) == "inactive"
    assert "ConditionPathExists=/etc/netboot/netboot.yaml was not met" in host.run("systemctl status netboot", 3)
    assert "no configuration at netboot.yaml" in host.run("netboot doctor", 3)
    complete = "bash -c 'source /usr/share/bash-completion/completions/netboot; complete -p netboot'"
    assert "_netboot_completion" in host.run(complete)
    explained(host)
    assert host.run("find /usr/lib/netboot ! -user root") == ""
    assert host.run("find /usr/lib/netboot -name pip -o -name setuptools -o -name gunicorn -type f") == ""


def explained(host: Host) -> None:
    """By `man`, which has the pages in its index too."""
    pages = host.run("dpkg -L netboot | grep '/usr/share/man/man1/.*[.]1[.]gz$'").splitlines()
    assert "/usr/share/man/man1/netboot-machine.1.gz" in pages
    assert host.run("MANWIDTH=100 man netboot | head -8") == PAGE
    assert host.run("whatis --long netboot-freeze") == WHATIS
    assert int(host.run("whatis --wildcard 'netboot*' | wc -l")) == len(pages)


def configured(host: Host) -> None:
    said = host.run(INIT)
    assert "netboot has /var/lib/netboot/data, /var/lib/netboot/store and what is secret; the rest it can read" in said
    assert "  systemctl start netboot                         start the service\n" in said
    host.run("systemctl start netboot")
    in_order(host)
    listed = host.run("find /etc/netboot /var/lib/netboot -maxdepth 2 -printf '%M %u:%g %p\\n' | sort -k3")
    lines = [line for line in listed.splitlines() if not line.startswith(("srw",)) and "/lib/netboot/data/" not in line]
    lines = [line for line in lines if "/lib/netboot/store/" not in line]
    (key,) = (host.root / "etc/netboot/keys").glob("*.pub")
    assert sorted(line.replace(key.stem, "ID") for line in lines) == sorted(OWNERS.splitlines())
    assert "Permission denied" in host.run(f"runuser -u netboot -- cat /etc/netboot/keys/{key.stem}.key", 1)
    assert host.run("curl -sf http://127.0.0.1:8080/boot.ipxe | head -1") == "#!ipxe"


def what_root_writes_the_service_can_use(host: Host) -> None:
    host.run("umask 077; netboot access token create alice --role viewer --ttl 1d > /root/alice.token")
    assert host.run("stat -c '%U %a' /etc/netboot/secrets/access.json") == "netboot 600"
    ask = "netboot whoami --token-file /root/alice.token || true"
    wait_for(lambda: "alice" in host.run(ask), SECONDS, PAUSE)
    host.run("netboot key rotate && netboot config bundle")
    in_order(host)


def upgraded(host: Host) -> None:
    kept = "sha256sum /etc/netboot/secrets/operator.token /var/lib/netboot/data/boot-id.key"
    before, first = host.run(kept), host.run("systemctl show --value -p MainPID netboot")
    said = host.run(f"{INSTALL} {package(host, '0.2.0')}")
    assert "not configured" not in said
    assert host.run("dpkg-query -W netboot") == "netboot\t0.2.0"
    assert (host.run("systemctl is-active netboot"), host.run(kept)) == ("active", before)
    assert host.run("systemctl show --value -p MainPID netboot") != first
    in_order(host)


def removed_and_installed_again(host: Host) -> None:
    host.run("apt-get -q remove -y netboot")
    assert host.run("find /proc -maxdepth 1 -ignore_readdir_race -user netboot") == ""
    assert host.run("systemctl is-active netboot", 3) == "inactive"
    assert "operator.token" in host.run("ls /etc/netboot/secrets")
    host.run("command -v netboot", 127)
    host.run(f"{INSTALL} {package(host, '0.2.0')}")
    assert host.run("systemctl is-enabled netboot") == "enabled"
    host.run("systemctl start netboot")
    in_order(host)


def purged(host: Host) -> None:
    host.run(
        "mkdir -p /etc/netboot/mounted && mount -t tmpfs tmpfs /etc/netboot/mounted && touch /etc/netboot/mounted/x"
    )
    said = host.run("apt-get -q purge -y netboot")
    assert [line for line in said.splitlines() if line.startswith("netboot: ")] == PURGED.splitlines()
    host.run("id netboot", 1)
    left = "find / -xdev -name '*netboot*' ! -path '/proc/*' ! -path '/root/*' ! -path '/var/log/*' ! -path '/tmp/*'"
    assert host.run(left) == "/etc/netboot"
    assert host.run("ls /etc/netboot/mounted") == "x"


def in_order(host: Host) -> None:
    """Until `doctor` says so, of a site with no machine."""
    wait_for(lambda: "1 looked at: 0 wrong, 0 warnings" in host.run("netboot doctor --quiet || true"), SECONDS, PAUSE)
