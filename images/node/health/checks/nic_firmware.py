"""Firmware of RDMA cards.

Source: Linux Documentation/ABI/stable/sysfs-class-infiniband (`fw_ver`, `board_id`: the PSID).
"""

from ..machine import Machine
from ..rdma import HOME
from ..result import Check, Result, counted, listed


def look(machine: Machine) -> Result:
    """Against the class, by board; and the same on all cards of one kind."""
    cards = machine.names(HOME)
    board = {one: machine.text(f"{HOME}/{one}/board_id") or "unreadable" for one in cards}
    version = {one: machine.text(f"{HOME}/{one}/fw_ver") or "unreadable" for one in cards}
    facts = {"cards": [f"{one} {board[one]} {version[one]}" for one in cards]}
    wanted = machine.expected.nic_firmware
    missing = sorted(set(wanted) - set(board.values()))
    if missing:
        words = f"no card of board {listed(missing)}, whose firmware is expected"
        return Result("fail", words, "see the PCI bus; or correct `health.nic_firmware`", facts)
    if not cards:
        return Result("absent", "no RDMA card, and none is expected", facts=facts)
    wrong = [
        f"{one} has {version[one]}, not {wanted[board[one]]}"
        for one in cards
        if wanted.get(board[one], version[one]) != version[one]
    ]
    if wrong:
        return Result("fail", f"firmware: {listed(wrong)}", "`mlxfwmanager` (or `mstflint`), then a power cycle", facts)
    for kind in sorted(set(board.values())):
        versions = sorted({version[one] for one in cards if board[one] == kind})
        if len(versions) > 1:
            words = f"cards of board {kind} have different firmware: {listed(versions)}"
            return Result("warn", words, "bring them to one version", facts)
    return Result("pass", f"{counted(len(cards), 'RDMA card')}: {listed(sorted(set(version.values())))}", facts=facts)


CHECK = Check("nic-firmware", "minor", 30, look)
