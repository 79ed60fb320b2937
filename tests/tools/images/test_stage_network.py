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
    parts = "".join(f". {STAGE}/{part}.sh\n" for part in ("words", "report", "arguments", "links", "units", "network"))
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
        timeout=300,
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


def test_a_lease_leaves_the_link_local_address_for_which_systemd_networkd_would_wait(stage: Stage) -> None:
    script = (
        "link_local() { ip -6 -o addr show dev card scope link | grep -o fe80::5054:ff:feaa:bbcc; }\n"
        "ip link set card up\nwait_for 30 link_local >/dev/null\nexport interface=card ip=10.9.0.7 mask=24\n"
        '"$BUSYBOX" sh "$LIB/dhcp.sh" bound\nlink_local\n'
    )
    assert isolated(stage, script) == "fe80::5054:ff:feaa:bbcc\n"


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


def test_routes_of_a_class_beside_a_router(stage: Stage) -> None:
    """Option 33 (RFC 2132) has no masks."""
    routes = "10.0.0.0/10.9.0.4 172.16.0.0/10.9.0.4 192.0.2.0/10.9.0.5"
    assert bound(stage, ip="10.9.0.7", mask="24", router="10.9.0.1", routes=routes)[1:] == [
        "default via 10.9.0.1 dev card",
        "10.0.0.0/8 via 10.9.0.4 dev card",
        "10.9.0.0/24 dev card scope link src 10.9.0.7",
        "172.16.0.0/16 via 10.9.0.4 dev card",
        "192.0.2.0/24 via 10.9.0.5 dev card",
    ]


def test_search_domains_and_only_such_words(stage: Stage) -> None:
    bound(stage, ip="10.9.0.7", mask="24", domain="a.example", search="rack-1.example $(reboot) * b.example;x example")
    assert (stage.folder / "resolv.conf").read_text() == "search rack-1.example example\n"
    bound(stage, ip="10.9.0.7", mask="24", domain="a.example", dns="10.9.0.2", NAMESERVERS="fd00::1 192.0.2.1")
    assert (stage.folder / "resolv.conf").read_text() == (
        "search a.example\nnameserver fd00::1\nnameserver 192.0.2.1\n"
    )


def test_an_mtu_that_is_larger_than_that_of_the_card_below(stage: Stage) -> None:
    """A macvlan, as a VLAN, takes none that what it lies on has not; macvlan is what the host's kernel has."""
    given = "export interface=upper ip=10.9.0.7 mask=24 mtu=9000\n"
    upper = f"{IPROUTE} link add link card name upper type macvlan\nip link set card up\nip link set upper up\n"
    asked = '"$BUSYBOX" sh "$LIB/dhcp.sh" bound\ncat /sys/class/net/card/mtu /sys/class/net/upper/mtu\n'
    assert isolated(stage, upper + given + asked).split() == ["9000", "9000"]
    assert isolated(stage, upper + given.replace("9000", "1400") + asked).split() == ["1500", "1400"]


UNITS = "for file in $NETWORKD/*; do echo ${file##*/}; cat $file; done; readlink $NETWORKD/../system/*\n"
LEASE = [
    *("DHCP=ipv4", "KeepConfiguration=static"),
    *("[DHCPv4]", "ClientIdentifier=mac", "UseHostname=no", "UseMTU=yes", "UseDomains=yes"),
]
DESCRIPTION = "Description=The link that fetched the image"
NAMES = "AlternativeNamesPolicy=database onboard slot path mac"


@pytest.mark.parametrize(
    ("said", "units"),
    [
        (
            "LINK= METHOD=dhcp",
            [
                *("10-netboot.link", "[Match]", f"PermanentMACAddress={MAC}", "[Link]", NAMES),
                *("10-netboot.network", "[Match]", f"PermanentMACAddress={MAC}", "[Network]", DESCRIPTION, *LEASE),
            ],
        ),
        (
            "METHOD=auto6 NAMESERVERS=fd00::1 CONFIGURED=yes",
            [
                *("10-netboot.link", "[Match]", f"PermanentMACAddress={MAC}", "[Link]", NAMES),
                *("10-netboot.network", "[Match]", f"PermanentMACAddress={MAC}", "[Network]", DESCRIPTION),
                *("DNS=fd00::1", "IPv6AcceptRA=yes", "KeepConfiguration=yes", "[IPv6AcceptRA]", "UseDomains=yes"),
                *("UseDNS=no", "[DHCPv6]", "UseDNS=no", "/dev/null"),
            ],
        ),
        (
            "METHOD=dhcp NAMESERVERS=192.0.2.53 CONFIGURED=yes",
            [
                *("10-netboot.link", "[Match]", f"PermanentMACAddress={MAC}", "[Link]", NAMES),
                *("10-netboot.network", "[Match]", f"PermanentMACAddress={MAC}", "[Network]", DESCRIPTION),
                *("DNS=192.0.2.53", *LEASE, "UseDNS=no", "/dev/null"),
            ],
        ),
        (
            "METHOD=dhcp VLAN=vlan5 VLAN_ID=5 PORTS=card CONFIGURED=yes",
            [
                *("10-netboot-cards.network", "[Match]", f"PermanentMACAddress={MAC}", "[Link]", "Unmanaged=yes"),
                *("10-netboot-links.link", "[Match]", "OriginalName=vlan5", "[Link]", "MACAddressPolicy=none"),
                *("10-netboot.link", "[Match]", f"PermanentMACAddress={MAC}", "[Link]", NAMES),
                *("10-netboot.network", "[Match]", "Name=vlan5", "[Network]", DESCRIPTION, *LEASE),
                "/dev/null",
            ],
        ),
        (
            "METHOD=dhcp VLAN=bond0.5 VLAN_ID=5 BOND=bond0 PORTS='card server' CONFIGURED=yes",
            [
                *("10-netboot-cards.network", "[Match]", f"PermanentMACAddress={MAC} {MAC[:-1]}d"),
                *("[Link]", "Unmanaged=yes"),
                *("10-netboot-links.link", "[Match]", "OriginalName=bond0.5 bond0", "[Link]", "MACAddressPolicy=none"),
                *("10-netboot.link", "[Match]", f"PermanentMACAddress={MAC} {MAC[:-1]}d", "[Link]", NAMES),
                *("10-netboot.network", "[Match]", "Name=bond0.5", "[Network]", DESCRIPTION, *LEASE),
                "/dev/null",
            ],
        ),
    ],
    ids=["card", "ipv6", "name server", "vlan", "vlan on bond"],
)
def test_systemd_networkd_goes_on_with_what_is_there(stage: Stage, said: str, units: list[str]) -> None:
    link = said.partition("VLAN=")[2].partition(" ")[0] or "card"
    other = f"{IPROUTE} link set server address {MAC[:-1]}d\n"
    top = f"{IPROUTE} link add link card name {link} address {MAC} type macvlan\n" if link != "card" else ""
    shown = isolated(stage, f"{other}{top}{said}\nleave_units {link}\n{UNITS}")
    assert shown.splitlines() == units


def test_an_address_by_a_real_router_s_announcements(stage: Stage) -> None:
    """SLAAC without IPv4; the server's own stays 0 here."""
    dnsmasq = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
    server = (
        f"{dnsmasq} --no-daemon --conf-file=/dev/null --port=0 --interface=server --bind-interfaces --user=root "
        f"--group=root --leasefile-ro --enable-ra --ra-param=*,4,0 --dhcp-range=fd00:9::,ra-only,64 "
        f"--log-facility={stage.folder}/dnsmasq.log"
    )
    start = f"ip -6 addr add fd00:9::1/64 dev server\n{server} &\nannouncing=$!\n"
    script = f"METHOD=auto6 NAMESERVERS=fd00:9::53\n{start}try_nic card 120 || echo failed\nkill $announcing\n"
    assert "netboot: card has address fd00:9::5054:ff:feaa:bbcc/64" in words(isolated(stage, script))
    assert (stage.folder / "resolv.conf").read_text() == "nameserver fd00:9::53\n"


def test_what_a_vlan_lies_on_takes_no_address_of_announcements(stage: Stage) -> None:
    """It is nobody's in the root, where the kernel would go on to believe whoever announces untagged."""
    made = f"VLAN=vlan5 VLAN_ID=5\n{IPROUTE} link add link card name vlan5 type macvlan\nmake_vlan card\n"
    shown = isolated(stage, f"{made}cd /proc/sys/net/ipv6/conf\ncat card/accept_ra vlan5/accept_ra\n")
    assert shown.split() == ["0", "1"]


def test_a_network_without_a_router_is_given_up(stage: Stage) -> None:
    shown = words(isolated(stage, "METHOD=auto6\ntry_nic card 2 || echo failed\n"))
    assert shown[-2:] == ["netboot: card got no address: no IPv6 router announced a prefix", "failed"]


def test_a_lease_of_a_real_server(stage: Stage) -> None:
    log = stage.folder / "dnsmasq.log"
    dnsmasq = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
    server = " ".join(
        (
            f"{dnsmasq} --no-daemon --conf-file=/dev/null --port=0 --interface=server --bind-interfaces --no-ping",
            "--user=root --group=root --leasefile-ro --dhcp-authoritative --dhcp-range=10.9.0.50,10.9.0.59,1h",
            f"--dhcp-option=3,10.9.0.1 --log-dhcp --log-facility={log}",
            "--dhcp-option=option:domain-search,rack-1.example,example --dhcp-option=33,192.0.2.0,10.9.0.1",
        )
    )
    start = f"ip addr add 10.9.0.1/24 dev server\n{server} &\nserver=$!\n"
    script = f"{start}try_nic card 120 || echo failed\nkill $server\n{SHOW}"
    shown = words(isolated(stage, script))
    address = (stage.run_folder / "address").read_text().strip()
    assert address.startswith("10.9.0.5")
    assert f"netboot: card has address {address}" in shown
    assert "default via 10.9.0.1 dev card" in shown
    assert "192.0.2.0/24 via 10.9.0.1 dev card" in shown
    assert (stage.folder / "resolv.conf").read_text() == "search rack-1.example example\n"
    assert "client provides name: node-1" in log.read_text()


def test_a_card_without_a_link_is_given_up(stage: Stage) -> None:
    shown = words(isolated(stage, "ip link set server down\ntry_nic card 1 || echo failed\n"))
    assert shown[-2:] == ["netboot: card has had no link for 1 seconds", "failed"]


def test_a_network_without_a_server_is_given_up(stage: Stage) -> None:
    shown = words(isolated(stage, "try_nic card 3 || echo failed\n"))
    assert shown[-2:] == ["netboot: card got no address: no DHCP server answered", "failed"]


def test_cards_that_were_only_tried_are_down_again(stage: Stage) -> None:
    """udev renames them in the root: of a kernel before 6.2 none that is up, and systemd-networkd waits for it."""
    script = (
        f"{IPROUTE} link add peer type veth peer name aside\nip link set peer up\n"
        "nics() { echo aside; echo card; }\ndescribe() { :; }\nleave_units() { :; }\ndeliver() { :; }\nsleep() { :; }\n"
        'by_fake() { [ "$1" = card ] && echo 10.9.0.7/24 >"$RUN/address"; }\n'
        "METHOD=fake MAC='' LINK=''\nbring_up_network\n"
        'until grep -q up /sys/class/net/card/operstate; do "$BUSYBOX" sleep 0.1; done\n'  # the kernel says so late
        "for card in aside card; do cat /sys/class/net/$card/operstate; done\n"
    )
    said = words(isolated(stage, script))
    assert said == [
        "netboot: aside has a link, asking for an address",
        "netboot: card has a link, asking for an address",
        "netboot: card has address 10.9.0.7/24",
        "down",
        "up",
    ]


def test_a_card_that_does_not_go_down_takes_no_network_from_the_machine(stage: Stage) -> None:
    """One that is last by name, and gone since the cards were listed."""
    script = (
        "nics() { echo card; echo gone; }\ndescribe() { :; }\nleave_units() { :; }\ndeliver() { :; }\nsleep() { :; }\n"
        'by_fake() { echo 10.9.0.7/24 >"$RUN/address"; }\n'
        "METHOD=fake MAC='' LINK=''\nbring_up_network 2>/dev/null && echo \"up: $UPLINK\"\n"
    )
    assert words(isolated(stage, script)) == [
        "netboot: card has a link, asking for an address",
        "netboot: card has address 10.9.0.7/24",
        "netboot: gone does not go down",
        "up: card",
    ]
