"""DHCP in a network namespace: a real dnsmasq, the stage's udhcpc, real addresses and routes."""

import os
import shutil
import subprocess

import pytest

from images.build.initrd import STAGE
from tests.tools.images.boot_stage import BUSYBOX, Stage

pytestmark = pytest.mark.tools

MAC = "52:54:00:aa:bb:cc"
IPROUTE = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")
CARDS = f"""
mount -t sysfs sysfs /sys
{IPROUTE} link add server type veth peer name card address {MAC}
ip link set server up
"""
SHOW = "ip -4 -o addr show dev card; ip route show\n"


def isolated(stage: Stage, script: str) -> str:
    """Run in namespaces of its own, where nothing of this machine's network is."""
    folder = stage.folder
    places = {"RUN": stage.run_folder, "LIB": STAGE, "ETC": folder, "NETWORKD": folder / "units", "BUSYBOX": BUSYBOX}
    variables = " ".join(
        f"{name}={value}" for name, value in {**places, "MAC": MAC, "NAME": "node-1", "BOOT": ""}.items()
    )
    parts = "".join(f". {STAGE}/{part}.sh\n" for part in ("words", "report", "network"))
    done = subprocess.run(
        [
            "unshare",
            "--net",
            "--mount",
            *([] if os.geteuid() == 0 else ["--map-root-user"]),
            BUSYBOX,
            "sh",
            "-c",
            f"export {variables}\n{parts}{CARDS}{script}",
        ],
        env={"PATH": f"{folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def bound(stage: Stage, **given: str) -> list[str]:
    """Addresses and routes after udhcpc called our script with these variables."""
    variables = " ".join(f"{name}='{value}'" for name, value in {"interface": "card", **given}.items())
    script = f'ip link set card up\nexport {variables}\n"$BUSYBOX" sh "$LIB/dhcp.sh" bound\n{SHOW}'
    return words(isolated(stage, script))


def test_an_ordinary_lease(stage: Stage) -> None:
    assert bound(stage, ip="10.9.0.7", mask="24", router="10.9.0.1", dns="10.9.0.2 10.9.0.3") == [
        "2: card inet 10.9.0.7/24 brd 10.9.0.255 scope global card\\ valid_lft forever preferred_lft forever",
        "default via 10.9.0.1 dev card",
        "10.9.0.0/24 dev card scope link src 10.9.0.7",
    ]
    assert (stage.folder / "resolv.conf").read_text() == "nameserver 10.9.0.2\nnameserver 10.9.0.3\n"
    assert (stage.folder / "units/10-netboot.network").read_text() == (
        f"[Match]\nPermanentMACAddress={MAC}\n[Network]\nDescription=The card that fetched the image\n"
        "DHCP=ipv4\nKeepConfiguration=static\n[DHCPv4]\nClientIdentifier=mac\nUseHostname=no\n"
    )


def test_a_router_outside_of_the_subnet(stage: Stage) -> None:
    assert bound(stage, ip="10.9.0.7", mask="32", router="172.16.0.1")[1:] == [
        "default via 172.16.0.1 dev card",
        "172.16.0.1 dev card scope link",
    ]


def test_classless_routes_replace_the_router(stage: Stage) -> None:
    routes = "10.8.0.0/16 10.9.0.4 0.0.0.0/0 10.9.0.5 10.7.0.0/24 0.0.0.0"
    assert bound(stage, ip="10.9.0.7", mask="24", router="10.9.0.1", staticroutes=routes)[1:] == [
        "default via 10.9.0.5 dev card",
        "10.7.0.0/24 dev card scope link",
        "10.8.0.0/16 via 10.9.0.4 dev card",
        "10.9.0.0/24 dev card scope link src 10.9.0.7",
    ]


def test_a_lease_of_a_real_server(stage: Stage) -> None:
    log = stage.folder / "dnsmasq.log"
    dnsmasq = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
    server = " ".join(
        (
            f"{dnsmasq} --no-daemon --conf-file=/dev/null --port=0 --interface=server --bind-interfaces --no-ping",
            "--user=root --group=root --leasefile-ro --dhcp-authoritative --dhcp-range=10.9.0.50,10.9.0.59,1h",
            f"--dhcp-option=3,10.9.0.1 --log-dhcp --log-facility={log}",
        )
    )
    start = f"ip addr add 10.9.0.1/24 dev server\n{server} &\nserver=$!\n"
    script = f"{start}try_nic card 30 || echo failed\nkill $server\n{SHOW}"
    shown = words(isolated(stage, script))
    address = (stage.run_folder / "address").read_text().strip()
    assert address.startswith("10.9.0.5")
    assert f"netboot: card has address {address}" in shown
    assert "default via 10.9.0.1 dev card" in shown
    assert "client provides name: node-1" in log.read_text()


def test_a_card_without_a_link_is_given_up(stage: Stage) -> None:
    shown = words(isolated(stage, "ip link set server down\ntry_nic card 1 || echo failed\n"))
    assert shown[-2:] == ["netboot: card has had no link for 1 seconds", "failed"]


def test_a_network_without_a_server_is_given_up(stage: Stage) -> None:
    shown = words(isolated(stage, "try_nic card 3 || echo failed\n"))
    assert shown[-2:] == ["netboot: card got no address: no DHCP server answered", "failed"]
