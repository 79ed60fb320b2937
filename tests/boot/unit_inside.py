"""Run inside a virtual machine, as root, when systemd has started the shipped unit: breaks into each of its processes,
and asks systemd how the unit is. What it finds goes to the second serial port, a line of JSON for each finding."""

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import tty
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.processes import runs, wait_for
from tests.walls.attempts import ABSTRACT, NAMES, Orders, attempts, broken_into

ROOT, STATE = Path("/etc/netboot"), Path("/var/lib/netboot")
INTRUDER = STATE / "data/intruder"
UNIT, ACCOUNT = "netboot.service", "netboot"
MANAGEMENT, APISERVER, OTHER = 8081, 6443, 7000
"""Ports: of the service's API, of an API server of the configuration, and of somebody else."""
SECONDS = 1080.0
"""For anything, in software emulation: ten processes begin at once, and each reads its whole program."""
PAUSE = 1.0
"""Before systemd is asked again: a program has to start for it."""
ASKED = ("Type", "NotifyAccess", "WatchdogUSec", "NoNewPrivileges", "User", "ProtectSystem", "NRestarts", "Result")
ELSEWHERE = "198.51.100.1"
"""An address of this machine that is none of loopback's."""


def run(*argv: str) -> str:
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=SECONDS)
    return (ran.stdout + ran.stderr).strip()


def operated(*argv: str) -> None:
    """
    Raises:
        RuntimeError: it failed; with what it said.
    """
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=SECONDS)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {ran.stdout}{ran.stderr}")


def shown(name: str) -> str:
    return run("systemctl", "show", "--value", f"--property={name}", UNIT)


def processes() -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{MANAGEMENT}/readyz", timeout=SECONDS) as answer:
        return json.load(answer)["details"]["processes"]["processes"]


def ready() -> bool:
    """Whether systemd was told so, by the supervisor that runs now."""
    return shown("ActiveState") == "active" and shown("StatusText") == "ready"


def main(say: Callable[[str, Any], None]) -> None:
    run("ip", "link", "set", "lo", "up")
    run("ip", "address", "add", f"{ELSEWHERE}/32", "dev", "lo")
    with (
        socket.create_server(("", APISERVER), backlog=4096),
        socket.create_server(("", OTHER)),
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0{ABSTRACT}")
        abstract.listen()
        run("systemctl", "start", UNIT)  # as multi-user.target does; it returns when READY=1 was said
        say("verified", [line for line in run("systemd-analyze", "verify", UNIT).splitlines() if UNIT in line])
        wait_for(ready, SECONDS, PAUSE)
        operated("netboot", "channel", "set", "stable", "tiny")
        for name in ("history.db", "pause/pause.json", "traces/position.json"):
            wait_for((STATE / "data" / name).exists, SECONDS)  # or who tries to write it would find none
        say("unit", [os.path.realpath(shown("FragmentPath")), shown("DropInPaths")])
        say("uid", pwd.getpwnam(ACCOUNT).pw_uid)
        say("asked", {name: shown(name) for name in ASKED})
        say("exposure", run("systemd-analyze", "security", "--no-pager", UNIT).splitlines()[-1])
        main_pid = int(shown("MainPID"))
        pids = {name: process["pid"] for name, process in processes().items()} | {"supervisor": main_pid}
        status = Path(f"/proc/{pids['boot-0']}/status").read_text()
        say("status", dict(line.split(":\t") for line in status.splitlines() if ":\t" in line))
        for kind in (each for each in NAMES if NAMES[each] in pids):  # `resources` only where no file is the inventory
            orders = attempts(ROOT, STATE, kind, pids, APISERVER, OTHER)
            say(kind, broken_into(INTRUDER, NAMES[kind], processes, orders, SECONDS))
        say("reloaded", run("systemctl", "reload", UNIT))
        addresses(say)
        watchdog(say, main_pid, pids)
        run("systemctl", "stop", UNIT)
        say("stopped", [shown("ActiveState"), shown("Result")])


def addresses(say: Callable[[str, Any], None]) -> None:
    """The unit's two lines about addresses, as an operator may have them: who may connect anywhere no longer does."""
    orders: Orders = {"here": ("connect", OTHER), "elsewhere": ("connect-to", [ELSEWHERE, OTHER])}
    before = broken_into(INTRUDER, NAMES["fetcher"], processes, orders, SECONDS)
    run("systemctl", "set-property", "--runtime", UNIT, "IPAddressDeny=any", "IPAddressAllow=localhost")
    say("addresses", [before, broken_into(INTRUDER, NAMES["fetcher"], processes, orders, SECONDS)])


def watchdog(say: Callable[[str, Any], None], main_pid: int, pids: dict[str, int]) -> None:
    """A supervisor that is stopped is killed, all of its processes with it, and started again."""
    os.kill(main_pid, signal.SIGSTOP)
    wait_for(lambda: shown("NRestarts") != "0" and shown("ActiveState") == "active", SECONDS, PAUSE)
    left = [name for name, pid in pids.items() if runs(pid)]
    say("watchdog", {"left": left, "same": int(shown("MainPID")) == main_pid, "restarts": shown("NRestarts")})


if __name__ == "__main__":
    with open(sys.argv[1], "wb", buffering=0) as port:
        tty.setraw(port.fileno())

        def say(name: str, what: Any) -> None:
            port.write(json.dumps({name: what}).encode() + b"\n")

        try:
            main(say)
        except Exception as error:
            say("failed", f"{type(error).__name__}: {error}\n{run('journalctl', '-u', UNIT, '-n', '60', '--no-pager')}")
            raise
        say("end", "")
