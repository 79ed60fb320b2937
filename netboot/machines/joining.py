"""What the inventory must say, and must not, of machines that join a cluster: PCR policies, node addresses, taints.

A node's addresses go into its serving certificate, which the cluster's own authority signs: an address that is another
node's, a Service's or everybody's would let it speak for those.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from images.values.strict import Fault
from netboot.addresses import UNKNOWN, plain_address
from netboot.machines.declared import Declared
from netboot.machines.values import HELD, OURS, UNATTESTED, UNCHECKED

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Place = tuple[int | str, ...]


class Joining(NamedTuple):
    """What the configuration knows. `services`: by cluster, the ranges of its Services' addresses. `local`: join's
    listener is on loopback, so those who join are on this host."""

    services: Mapping[str, Sequence[Network]]
    local: bool = False


def unsaid_policies(items: Sequence[Declared]) -> Iterator[Fault]:
    """Machines, by profile, of which nobody says which PCRs they must show. Nothing is a policy by omission."""
    silent: Counter[str] = Counter()
    for item in items:
        if _says_nothing(item):
            yield item.fault(f"says nothing: {_REMEDY}", "pcrs")
        elif item.kind == "machine" and "pcrs" not in item.value:
            silent[str(item.value.get("profile"))] += 1
    for item in items:
        count = silent[item.name] if item.kind == "profile" and "pcrs" not in item.value else 0
        if count:
            machines = "its machine" if count == 1 else f"its {count} machines"
            yield item.fault(f"nobody says which PCRs {machines} must show to join: {_REMEDY}", "name")


def unsaid_policies_apart(items: Sequence[Declared]) -> Iterator[Fault]:
    """The same, said of each machine: the others of its profile are in order."""
    silent = {item.name for item in items if item.kind == "profile" and "pcrs" not in item.value}
    for item in items:
        if _says_nothing(item):
            yield item.fault(f"says nothing: {_REMEDY}", "pcrs")
        elif item.kind == "machine" and "pcrs" not in item.value and item.value.get("profile") in silent:
            yield item.fault(f"neither it nor its profile says which PCRs it must show to join: {_REMEDY}")


def _says_nothing(item: Declared) -> bool:
    """Whether it has the key, and nothing there."""
    return item.kind in ("machine", "profile") and "pcrs" in item.value and item.value["pcrs"] in ({}, None)


_REMEDY = (
    "write `pcrs: none` (whatever firmware and boot loader were started will do), or the values that are allowed, "
    "in the profile or in each machine"
)


def weakened_taints(items: Sequence[Declared]) -> Iterator[Fault]:
    """Taints that are declared in the place of join's own, with a value or an effect that keeps too few Pods off:
    admission would refuse such a node for ever, or it would run what nobody has checked it for."""
    for item in items:
        listed = item.inner("node").get("taints") if item.kind == "machine" else None
        for number, taint in enumerate(listed if isinstance(listed, list) else []):
            key, _, effect = str(taint).partition(":")
            key, _, value = key.partition("=")
            if key == UNCHECKED and value:
                yield item.fault(
                    f"{key}={value}: this taint has no value but what the gate gives it", "node", "taints", number
                )
            elif key == UNCHECKED and effect != "NoExecute":
                words = f"{key} with {effect} lets Pods of the boot before start: write NoExecute, or leave it to join"
                yield item.fault(words, "node", "taints", number)
            elif key == UNATTESTED and effect == "PreferNoSchedule":
                words = f"{key} with {effect} keeps no Pod off: write NoSchedule or NoExecute, or leave it to join"
                yield item.fault(words, "node", "taints", number)


def reserved_keys(items: Sequence[Declared]) -> Iterator[Fault]:
    """Labels and taints that are netboot's own to give: admission would refuse such a node for ever."""
    for item in items:
        node = item.inner("node") if item.kind == "machine" else {}
        labels, taints = node.get("labels"), node.get("taints")
        for key in labels if isinstance(labels, dict) else ():
            if str(key).startswith(OURS):
                yield item.fault(f"{key}: labels under {OURS} are netboot's own to give", "node", "labels", key)
        for number, taint in enumerate(taints if isinstance(taints, list) else []):
            key = str(taint).partition(":")[0].partition("=")[0]
            if key.startswith(OURS) and key not in (UNCHECKED, UNATTESTED, HELD):
                yield item.fault(f"{key}: taints under {OURS} are netboot's own to give", "node", "taints", number)


def addresses_of_two_machines(items: Sequence[Declared]) -> Iterator[Fault]:
    """An address is one machine's, however it is spelt."""
    first: dict[str, tuple[Declared, Place]] = {}
    for item, below, address in addresses(items):
        other, where = first.setdefault(str(address), (item, below))
        if other is item and where != below:
            yield item.fault(f"address {address} is here twice", *below)
        elif other is not item and other.name != item.name:  # the same name is a fault of its own
            place = other.place(*where)
            words = f"address {address} is of two machines, {item.name!r} and {other.name!r} in {place}"
            yield item.fault(words, *below)


def addresses_of_others(items: Sequence[Declared], joining: Joining | None) -> Iterator[Fault]:
    """No machine has an address that is a Service's, or that means another machine to everybody."""
    local = joining is not None and joining.local
    for item, below, address in addresses(items):
        cluster = str(item.value.get("cluster", "default"))
        ranges = joining.services.get(cluster, ()) if joining is not None else ()
        kind = "" if address.is_loopback and local else _kind(address)
        if kind:
            yield item.fault(f"{address} is {kind}, and no address of a node", *below)
        elif service := next((network for network in ranges if address in network), None):
            words = f"{address} is in {service}, which Services of cluster {cluster} have, and no address of a node"
            yield item.fault(f"{words}; correct it, or `clusters.{cluster}.service_cidrs` in netboot.yaml", *below)


def _kind(address: Address) -> str:
    kinds = {
        "unspecified": address.is_unspecified,
        "a loopback address": address.is_loopback,
        "a link-local address": address.is_link_local,
        "a multicast address": address.is_multicast,
        "reserved": address.is_reserved,
    }
    return next((kind for kind, is_so in kinds.items() if is_so), "")


def addresses(items: Sequence[Declared]) -> Iterator[tuple[Declared, Place, Address]]:
    """Those that can be read, in the one spelling; the others are faults of form."""
    for item in items:
        listed = item.inner("node").get("addresses") if item.kind == "machine" else None
        for number, text in enumerate(listed if isinstance(listed, list) else []):
            plain = plain_address(text) if isinstance(text, str) else UNKNOWN
            if plain != UNKNOWN:
                yield item, ("node", "addresses", number), ipaddress.ip_address(plain)
