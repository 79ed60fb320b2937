"""What of dracut's arguments for the network our initrd does, and in which words it refuses the rest."""

import contextlib
import ipaddress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from images.values.network_arguments import fault

BONDED = "bond=bond0:BOOTIF,enp59s0f1np1:mode=802.3ad,lacp_rate=fast,xmit_hash_policy=layer3+4"
A_CARD = "a CARD is BOOTIF, enx and its MAC, or its PCI path, like enp59s0f0 (docs/boot-stage.md)"
IP = f"say dhcp, auto6, LINK:dhcp or LINK:auto6, where LINK is the VLAN, the bond or a CARD; {A_CARD}"
BOND = f"say bond0:CARD,CARD:mode=802.3ad or …:mode=active-backup; {A_CARD}"
VLAN = f"say vlan5:LINK or LINK.5:LINK, where LINK is the bond or a CARD; {A_CARD}"
DONE = [
    "",
    "quiet console=ttyS0,115200n8 rd.driver.blacklist=nouveau",
    "ip=dhcp",
    "ip=auto6 nameserver=fd00::53 nameserver=192.0.2.53",
    "ip=BOOTIF:dhcp",
    "ip=enx525400aabbcc:auto6",
    "ip=enP1p5s0:dhcp",
    "netboot.nic_driver=mlx5_core,ice",
    f"{BONDED} ip=bond0:dhcp",
    f"{BONDED} vlan=bond0.4094:bond0 ip=bond0.4094:auto6",
    f"ip=vlan5:dhcp vlan=vlan5:bond0 {BONDED}",
    "bond=bond7:enp1s0d1,enp1s0:mode=active-backup,miimon=50 ip=bond7:dhcp",
    "vlan=vlan5:BOOTIF ip=vlan5:dhcp",
    "vlan=enp1s0.5:enp1s0 ip=enp1s0.5:dhcp",
]
REFUSED = [
    ("ip", f"ip= is not understood; {IP}"),
    ("ip=eth0:dhcp", f"ip=eth0:dhcp is not understood; {IP}"),
    ("ip=192.0.2.9::192.0.2.1:24:n:enp1s0:none", f"ip=192.0.2.9::192.0.2.1:24:n:enp1s0:none is not understood; {IP}"),
    ("ip=enp1s0:dhcp6", f"ip=enp1s0:dhcp6 is not understood; {IP}"),
    ("ip=enx52:54:00:aa:bb:cc:dhcp", f"ip=enx52:54:00:aa:bb:cc:dhcp is not understood; {IP}"),
    ("bond=bond0", f"bond=bond0 is not understood; {BOND}"),
    ("bond=bond0:enp1s0:mode=balance-rr", f"bond=bond0:enp1s0:mode=balance-rr is not understood; {BOND}"),
    (
        "bond=bond0:enp1s0:mode=active-backup,lacp_rate=fast",
        f"bond=bond0:enp1s0:mode=active-backup,lacp_rate=fast is not understood; {BOND}",
    ),
    ("vlan=vlan0:enp1s0", f"vlan=vlan0:enp1s0 is not understood; {VLAN}"),
    ("vlan=vlan4095:enp1s0", f"vlan=vlan4095:enp1s0 is not understood; {VLAN}"),
    ("vlan=storage:enp1s0", f"vlan=storage:enp1s0 is not understood; {VLAN}"),
    (
        "nameserver=dns.example",
        "nameserver=dns.example is not understood; say one IPv4 or IPv6 address (docs/boot-stage.md)",
    ),
    (
        "netboot.nic_driver=",
        (
            "netboot.nic_driver= is not understood; "
            "say drivers' names with commas between them, like mlx5_core (docs/boot-stage.md)"
        ),
    ),
    ("ip=dhcp ip=auto6", "ip= is there twice; a boot needs one, and others are systemd-networkd's, in the image"),
    (
        "nameserver=192.0.2.1 " * 4,
        "nameserver= is there more than three times, and the C library reads three",
    ),
    (
        "bond=bond0:enp2s0,enp1s0,enp2s0,enp1s0:mode=802.3ad ip=bond0:dhcp",
        "bond= names enp1s0 twice; say each card once",
    ),
    (BONDED, "ip= must be bond0:dhcp or bond0:auto6, for what bond= and vlan= make"),
    (f"{BONDED} ip=dhcp", "ip= must be bond0:dhcp or bond0:auto6, for what bond= and vlan= make"),
    (
        f"{BONDED} vlan=vlan5:bond0 ip=bond0:dhcp",
        "ip= must be vlan5:dhcp or vlan5:auto6, for what bond= and vlan= make",
    ),
    (
        f"{BONDED} vlan=vlan5:enp1s0 ip=vlan5:dhcp",
        "vlan=vlan5:enp1s0 lies on enp1s0, and bond= makes bond0; say vlan5:bond0",
    ),
    ("vlan=vlan5:bond0 ip=vlan5:dhcp", "vlan=vlan5:bond0 lies on bond0, which no bond= makes"),
    (
        "vlan=enp2s0.5:enp1s0 ip=enp2s0.5:dhcp",
        "vlan=enp2s0.5:enp1s0 is named after another link than enp1s0; say vlan5:enp1s0",
    ),
    (
        "vlan=enp59s0f0np0.100:enp59s0f0np0",
        "vlan=enp59s0f0np0.100:enp59s0f0np0: the kernel takes no such name; say vlan100:enp59s0f0np0",
    ),
    ("vlan=BOOTIF.5:BOOTIF", "vlan=BOOTIF.5:BOOTIF: the kernel takes no such name; say vlan5:BOOTIF"),
    ("ip=bond0:dhcp", "ip=bond0:dhcp is for bond0, which neither bond= nor vlan= makes"),
    ("ip=enp1s0.5:dhcp", "ip=enp1s0.5:dhcp is for enp1s0.5, which neither bond= nor vlan= makes"),
    ("ip=dhcp rd.route=a", "rd.route is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md"),
    (
        "rd.iscsi.initiator=x",
        "rd.iscsi.initiator is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md",
    ),
    ("rd.neednet", "rd.neednet is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md"),
]


@pytest.mark.parametrize("line", DONE)
def test_what_is_done(line: str) -> None:
    assert fault(line.split()) is None


@pytest.mark.parametrize(("line", "why"), REFUSED)
def test_what_is_refused_and_with_which_remedy(line: str, why: str) -> None:
    assert fault(line.split()) == why


CARDS = st.sampled_from(["BOOTIF", "enp1s0", "enp59s0f0np0", "enx525400aabbcc", "enP1p5s0d1", "eth0", "", "enp"])
LINKS = st.one_of(CARDS, st.sampled_from(["bond0", "bond1", "vlan5", "bond0.5", "enp1s0.5", "enp59s0f0np0.4000"]))
METHODS = st.sampled_from(["dhcp", "auto6", "dhcp6", "none", ""])
MODES = st.sampled_from(["mode=802.3ad", "mode=active-backup", "mode=802.3ad,lacp_rate=slow", "mode=0", "miimon=9"])
NEARLY_ADDRESSES = st.from_regex(
    r"(25[0-9]|[0-9]{1,3})(\.[0-9]{1,3}){3}|[0-9a-fF]{0,4}(:{1,2}[0-9a-f]{0,5}){1,8}", fullmatch=True
)
ARGUMENTS = st.one_of(
    st.builds("ip={}:{}".format, LINKS, METHODS),
    st.builds("ip={}".format, METHODS),
    st.builds(lambda cards, mode: f"bond=bond0:{','.join(cards)}:{mode}", st.lists(CARDS, max_size=10), MODES),
    st.builds("vlan={}:{}".format, LINKS, LINKS),
    st.builds("nameserver={}".format, NEARLY_ADDRESSES),
    st.sampled_from(["nameserver=fd00::1", "nameserver=a", "ifname=a:b", "rd.net.x=1", "quiet", "ip", "*", "bond="]),
    st.builds("netboot.nic_driver={}".format, st.from_regex(r"[a-z,_]{0,9}", fullmatch=True)),
)
LINES = st.lists(ARGUMENTS, max_size=5)
"""Command lines near those that are understood; the shell is held to the same by tests/tools/images."""


@given(LINES)
def test_what_is_done_needs_no_order(words: list[str]) -> None:
    assert (fault(words) is None) == (fault(words[::-1]) is None)


@given(st.one_of(NEARLY_ADDRESSES, st.ip_addresses().map(lambda address: address.exploded)))
@example("fd00:1:53")
@example("10.0.0.256")
@example("FD00::53")
@example("::")
@example("1::")
@example("::1:2:3:4:5:6:7")
def test_a_name_server_is_an_address_and_not_nearly_one(text: str) -> None:
    is_address = False
    with contextlib.suppress(ValueError):
        is_address = bool(ipaddress.ip_address(text).version)
    assert (fault([f"nameserver={text}"]) is None) == is_address
