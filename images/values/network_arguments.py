"""Kernel arguments that say how a machine's initrd comes to an address: a strict part of dracut.cmdline(7).

The initrd reads them (`images/node/initrd/arguments.sh`, with the same words where it refuses one); the inventory is
held to them by this module, because a machine that cannot read them has no network to say so.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

LONGEST = 15
"""Characters of an interface's name (IFNAMSIZ in linux/if.h, less its end)."""

_CARD = r"(BOOTIF|enx[0-9a-f]{12}|en(P[0-9]{1,5})?p[0-9]{1,3}s[0-9]{1,3}(f[0-9]{1,3})?(n[0-9a-z]{1,8}|d[0-9]{1,3})?)"
"""systemd.net-naming-scheme(7): by MAC, or by PCI path; both are the same at every boot."""
_BOND = r"bond[0-9]{1,3}"
_ID = r"([1-9][0-9]{0,2}|[1-3][0-9]{3}|40[0-8][0-9]|409[0-4])"
_TIME = r"(,miimon=[1-9][0-9]{0,4})*"
_LACP = r"(,(miimon=[1-9][0-9]{0,4}|lacp_rate=(slow|fast)|xmit_hash_policy=(layer2|layer2\+3|layer3\+4)))*"
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HEX = r"[0-9A-Fa-f]{1,4}"
_IPV4 = rf"{_BYTE}(\.{_BYTE}){{3}}"
_SHORTENED = "|".join(rf"({_HEX}:){{1,{groups}}}(:{_HEX}){{1,{7 - groups}}}" for groups in range(1, 7))
_FORMS = {
    "ip": rf"(({_CARD}|{_BOND}|({_CARD}|{_BOND})\.{_ID}|vlan{_ID}):)?(dhcp|auto6)",
    "bond": rf"{_BOND}:{_CARD}(,{_CARD}){{0,7}}:(mode=active-backup{_TIME}|mode=802\.3ad{_LACP})",
    "vlan": rf"(vlan|({_CARD}|{_BOND})\.){_ID}:({_CARD}|{_BOND})",
    "nameserver": rf"{_IPV4}|({_HEX}:){{7}}{_HEX}|({_HEX}:){{1,7}}:|:(:{_HEX}){{0,6}}:{_HEX}|::|{_SHORTENED}",
    "netboot.nic_driver": r"[a-z0-9_-]{1,32}(,[a-z0-9_-]{1,32}){0,7}",
}
_A_CARD = "a CARD is BOOTIF, enx and its MAC, or its PCI path, like enp59s0f0"
_REMEDIES = {
    "ip": f"say dhcp, auto6, LINK:dhcp or LINK:auto6, where LINK is the VLAN, the bond or a CARD; {_A_CARD}",
    "bond": f"say bond0:CARD,CARD:mode=802.3ad or …:mode=active-backup; {_A_CARD}",
    "vlan": f"say vlan5:LINK or LINK.5:LINK, where LINK is the bond or a CARD; {_A_CARD}",
    "nameserver": "say one IPv4 or IPv6 address",
    "netboot.nic_driver": "say drivers' names with commas between them, like mlx5_core",
}
_OF_DRACUT = re.compile(
    r"ifname|bootdev|bridge|team|netroot|rd\.(bootif|neednet|peerdns|route|znet|multipath)|rd\.(iscsi|net)\..*"
)
"""What people know from dracut, and what our initrd does not do: it must not be passed over in silence."""


@dataclass(slots=True)
class _Said:
    """The arguments as they were said; "" or empty: not at all."""

    once: dict[str, str] = field(default_factory=dict)
    nameservers: list[str] = field(default_factory=list)


def fault(words: Iterable[str]) -> str | None:
    """Why the initrd cannot do what these arguments of a whole command line say, with a remedy; None: it can."""
    said = _Said()
    for word in words:
        name, _, value = word.partition("=")
        if _OF_DRACUT.fullmatch(name):
            return f"{name} is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md"
        if name not in _FORMS:
            continue
        if re.fullmatch(_FORMS[name], value) is None:
            return f"{name}={value} is not understood; {_REMEDIES[name]} (docs/boot-stage.md)"
        if name == "nameserver":
            said.nameservers.append(value)
        elif name in said.once:
            return f"{name}= is there twice; a boot needs one, and others are systemd-networkd's, in the image"
        else:
            said.once[name] = value
    if len(said.nameservers) > 3:  # MAXNS in resolv.h
        return "nameserver= is there more than three times, and the C library reads three"
    return _together(said.once)


def _together(said: dict[str, str]) -> str | None:
    """Whether the address is for what bond and VLAN make of the cards."""
    link, _, made = said.get("bond", "").partition(":")
    cards = made.partition(":")[0].split(",")
    if twice := sorted(card for card in cards if cards.count(card) > 1):
        return f"bond= names {twice[0]} twice; say each card once"
    if vlan := said.get("vlan"):
        name, _, device = vlan.partition(":")
        if link and device != link:
            return f"vlan={vlan} lies on {device}, and bond= makes {link}; say {name}:{link}"
        if not link and device.startswith("bond"):
            return f"vlan={vlan} lies on {device}, which no bond= makes"
        if not name.startswith("vlan") and name.rpartition(".")[0] != device:
            return f"vlan={vlan} is named after another link than {device}; say vlan{name.rpartition('.')[2]}:{device}"
        if len(name) > LONGEST or name.startswith("BOOTIF"):
            return f"vlan={vlan}: the kernel takes no such name; say vlan{name.rpartition('.')[2]}:{device}"
        link = name
    given, _, method = said.get("ip", "").rpartition(":")
    if link and given != link:
        return f"ip= must be {link}:dhcp or {link}:auto6, for what bond= and vlan= make"
    if not link and (given.startswith(("bond", "vlan")) or "." in given):
        return f"ip={given}:{method} is for {given}, which neither bond= nor vlan= makes"
    return None
