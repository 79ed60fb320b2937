"""What `netboot doctor --network` says: who answers DHCP here, and what machines of each kind would be told."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from images.values import files
from netboot.cli.diagnosis import Diagnosis
from netboot.config import Config
from netboot.dhcp.asking import SECONDS, ask, why_not_fetched
from netboot.dhcp.packets import CLIENTS, Client, Offer
from netboot.dhcp.plan import unfit
from netboot.stores.inventory import declarations_of

_PRINT = "`netboot dhcp config` prints what the server has to know; see docs/dhcp.md"
_CHOICE = "let one server answer for each network: machines take whichever offer comes first"


def diagnose(config: Config, interface: str | None) -> list[Diagnosis]:
    """Asked on this interface, or on that of the default route.

    Raises:
        click.ClickException: it cannot be asked there, with the remedy. FaultsError: the inventory has faults.
    """
    arm64 = any(machine.architecture == "arm64" for machine in declarations_of(config).judged(None).inventory.machines)
    clients = [client for client in CLIENTS if arm64 or "arm64" not in client.firmware.key]
    name = interface or _default()
    try:
        offers = ask(name, clients)
    except PermissionError:
        raise click.ClickException(
            "asking as firmware does wants root, or CAP_NET_RAW: run `netboot doctor --network` with sudo"
        ) from None
    except OSError as error:
        raise click.ClickException(
            f"cannot ask on {name}: {error.strerror}; see `ip link`, and name another with --interface"
        ) from None
    return list(judged(name, list(zip(clients, offers, strict=True)), f"{config.provisioning.url}/boot.ipxe"))


def judged(
    interface: str,
    heard: Sequence[tuple[Client, Sequence[Offer]]],
    script: str,
    why_not: Callable[[Offer], str] = why_not_fetched,
) -> Iterator[Diagnosis]:
    """What was heard, in words. `script`: what iPXE is to be told; `why_not`: tries to fetch what an offer names."""
    every = [offer for _, offers in heard for offer in offers]
    if not every:
        words = f"no server answered on {interface} within {SECONDS:g} s"
        remedy = "look whether a DHCP server or relay is on this network, and its firewall; or name another --interface"
        yield Diagnosis("network", "servers", "refuse", words, remedy)
        return
    given = [offer for offer in every if offer.address]
    giving = _servers(given)
    if not giving:
        words = f"none of {_servers(every)} gives an address on {interface}"
        yield Diagnosis("network", "servers", "refuse", words, "look at the ranges of the DHCP server, and its log")
    elif "," in giving:
        yield Diagnosis("network", "servers", "warn", f"several give addresses on {interface}: {giving}", _CHOICE)
    else:
        yield Diagnosis("network", "servers", "ok", f"{giving} gives addresses on {interface}, like {given[0].address}")
    for client, offers in heard:
        yield from _client(client, offers, script, why_not)


def _client(
    client: Client, offers: Sequence[Offer], script: str, why_not: Callable[[Offer], str]
) -> Iterator[Diagnosis]:
    """Of one kind of machine."""
    booting = [offer for offer in offers if offer.file or offer.menu]
    taken = [offer for offer in booting if offer.http or not client.http]
    if not booting:
        said = f"{_servers(offers)} names nothing to boot" if offers else "no server answered it"
        yield Diagnosis("network", client.words, "warn" if client.http else "refuse", said, _PRINT)
    elif not taken:
        said = f"{_servers(booting)} does not repeat HTTPClient (option 60): no firmware takes its offer"
        yield Diagnosis("network", client.words, "refuse", said, _PRINT)
    told = {_told(offer) for offer in taken}
    if len(told) > 1:
        words = "is told different things: " + "; ".join(f"{offer.server}: {_told(offer)}" for offer in taken)
        yield Diagnosis("network", client.words, "warn", words, _CHOICE)
    for offer in taken:
        if _told(offer) in told:
            told.remove(_told(offer))
            yield _fetched(client, offer, script, why_not)


def _fetched(client: Client, offer: Offer, script: str, why_not: Callable[[Offer], str]) -> Diagnosis:
    """Whether one thing that it is told is right, and there."""
    words = f"{offer.server} says {_told(offer)}"
    if client.ipxe and not offer.menu and offer.file != script:
        loops = "" if "://" in offer.file else ": it would load itself for ever"
        return Diagnosis("network", client.words, "refuse", f"{words}, and not {script}{loops}", _PRINT)
    if offer.menu:
        remedy = "boot a machine, or ask whoever looks after that server: the menu is not followed here"
        return Diagnosis("network", client.words, "unknown", words, remedy)
    if not client.ipxe and (useless := unfit(client.firmware, offer.file)):
        return Diagnosis("network", client.words, "refuse", f"{words}: {useless}", _PRINT)
    fault = why_not(offer)
    if fault:
        remedy = "`netboot doctor` says whether the service runs; of a TFTP server see docs/dhcp.md#tftp"
        return Diagnosis(
            "network", client.words, "refuse", f"{words}, which cannot be fetched from here: {fault}", remedy
        )
    return Diagnosis("network", client.words, "ok", f"{words}, which is there")


def _told(offer: Offer) -> str:
    if offer.menu:
        return "a PXE menu (option 43)"
    return offer.file if "://" in offer.file else f"{offer.file} by TFTP from {offer.tftp or offer.server}"


def _servers(offers: Iterable[Offer]) -> str:
    return ", ".join(sorted({offer.server or "a server without a name" for offer in offers}))


def _default() -> str:
    """The interface of the default route: /proc/net/route, whose second column is the destination.

    Raises:
        click.ClickException: there is none.
    """
    lines = files.small(Path("/proc/net/route")).decode().splitlines()[1:]
    found = next((words[0] for line in lines if (words := line.split())[1:2] == ["00000000"]), None)
    if found is None:
        raise click.ClickException("there is no default route: say on which network to ask, with --interface `eth0`")
    return found
