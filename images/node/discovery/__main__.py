"""`python3 -m node.discovery [ROOT]`: tell the service what this machine is made of, and wait until it is declared;
then this succeeds, and systemd reboots the machine into its image. ROOT stands for / in tests.

The service that the boot's script named is asked, over plain HTTP. Nothing that it says is obeyed but "reboot", which
whoever can answer for it could as well have by the script.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from ..agent.errors import AgentError, RefusedError, SettingsError
from ..agent.net import Server
from ..agent.settings import RUN, environment
from ..health.machine import Machine
from .ek import endorsement
from .gather import gathered
from .lldp import Listener, listening

ASK_SECONDS = 5.0
AGAIN_SECONDS = 1800.0
"""How often it is told again what was told: the service forgets it after an hour."""
REBOOT_AFTER = 12
"""Times in a row that the service knows no such boot: the machine asks anew."""
_NO_SUCH_BOOT = 404


def say(line: str) -> None:
    """One line for console and journal."""
    print(f"netboot-discovery: {line}", file=sys.stderr, flush=True)


def report(root: Path, mac: str, tpm: dict[str, Any] | None, heard: dict[str, dict[str, str]]) -> dict[str, Any]:
    """What is posted: docs/discovery.md."""
    said = gathered(Machine(root))
    cards = [{**card, "neighbour": heard.get(card["name"])} for card in said["cards"]]
    return {"schema": 1, "mac": mac, **said, "cards": cards, "tpm": tpm}


def lines(said: dict[str, Any]) -> list[str]:
    """The report for whoever stands before the machine."""
    firmware, cpu = said["firmware"], said["cpu"]
    shown = [
        f"{firmware['vendor']} {firmware['product']}, serial {firmware['serial'] or '(none)'}, UUID {firmware['uuid']}",
        f"{cpu['count']} x {cpu['model'] or 'processor'}, {said['memory_bytes'] >> 20} MiB of memory",
    ]
    for card in said["cards"]:
        link = f"{card['speed_mbps']} Mbit/s" if card["link"] else "no link"
        at = card["neighbour"]
        beyond = f", at {at['system']} port {at['port']}" if at else ""
        shown.append(f"card {card['name']} {card['mac']} {card['pci']} {card['driver']}, {link}{beyond}")
    shown += [f"disk {disk['name']} {disk['model']} {disk['size_bytes'] // 10**9} GB" for disk in said["disks"]]
    shown += [f"GPU {gpu['pci']} {gpu['id']}" for gpu in said["gpus"]]
    return [*shown, f"TPM's endorsement key {said['tpm']['ek_sha256'][:16]}" if said["tpm"] else "no TPM"]


class Told:
    """One boot's telling and asking. `show`: for lines of the console."""

    def __init__(self, root: Path, server: Server, boot: str, mac: str, show: Callable[[str], None] = say) -> None:
        self._root, self._server, self._show, self._mac = root, server, show, mac
        self._path = f"/v1/boots/{boot}/discovery"
        self._tpm: dict[str, Any] | None = None
        self._no_tpm = ""
        self._told: dict[str, Any] = {}
        self._told_at = float("-inf")
        self._trouble, self._unknown = "", 0

    def step(self, heard: dict[str, dict[str, str]], now: float) -> bool:
        """Tell what is new, and ask; whether to reboot: the machine is declared, or its boot is not known."""
        if self._tpm is None:  # its driver may come later than this program, as a card's
            self._look_for_tpm()
        said, refused = report(self._root, self._mac, self._tpm, heard), ""
        firmware = said["firmware"]
        query = urlencode({"mac": self._mac, "uuid": firmware["uuid"], "serial": firmware["serial"]})
        try:
            if said != self._told or now - self._told_at >= AGAIN_SECONDS:
                refused = self._tell(said, now)
            answer = self._server.call("GET", f"{self._path}?{query}")
        except AgentError as error:
            known = not (isinstance(error, RefusedError) and error.status == _NO_SUCH_BOOT)
            self._unknown = 0 if known else self._unknown + 1
            self._in_trouble(str(error))
            return self._unknown >= REBOOT_AFTER
        self._in_trouble(refused)
        self._unknown = 0
        return isinstance(answer, dict) and answer.get("declared") is True

    def _look_for_tpm(self) -> None:
        self._tpm, why = endorsement(self._root)
        if why and why != self._no_tpm:
            self._show(why)
        self._no_tpm = why

    def _tell(self, said: dict[str, Any], now: float) -> str:
        """Why the service does not take it, "" where it does: whoever is declared by hand reboots all the same."""
        try:
            self._server.call("POST", self._path, said)
        except RefusedError as error:
            return str(error)
        self._told, self._told_at = said, now
        for line in ("this machine told the service:", *lines(said), "it waits until it is declared"):
            self._show(line)
        return ""

    def _in_trouble(self, why: str) -> None:
        if why and why != self._trouble:
            self._show(f"{why}; it is tried again")
        self._trouble = why


def wait(told: Told, listener: Listener) -> None:
    """Return when the machine is to reboot."""
    while not told.step(listener.heard, monotonic()):
        listener.listen(ASK_SECONDS)
    say("this machine is declared, or to ask anew: it reboots")


def main(argv: list[str]) -> int:
    """0: reboot. 1: this is no boot of ours."""
    os.umask(0o077)
    root = Path(argv[1] if len(argv) > 1 else "/").absolute()
    try:
        env = environment(root / RUN / "boot.env")
    except SettingsError as error:
        say(str(error))
        return 1
    told = Told(root, Server(env.get("REPORT", ""), seconds=15), env["BOOT"], env.get("MAC", ""))
    with listening() as listener:
        wait(told, listener)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
