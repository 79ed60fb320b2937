"""Firmware of RDMA cards.

Source: Linux Documentation/ABI/stable/sysfs-class-infiniband (`fw_ver`, `board_id`: the PSID).
"""

from ..machine import Machine
from ..rdma import HOME
from ..result import Check, Result, counted, listed


def look(machine: Machine) -> Result:
    """Against the class, by board; and the same on all cards of one kind."""
    cards = machine.names(HOME)
    board = {card: machine.text(f"{HOME}/{card}/board_id") or "unreadable" for card in cards}
    version = {card: machine.text(f"{HOME}/{card}/fw_ver") or "unreadable" for card in cards}
    facts = {"cards": [f"{card} {board[card]} {version[card]}" for card in cards]}
    expected = machine.expected.nic_firmware
    missing = sorted(set(expected) - set(board.values()))
    if missing:
        summary = f"no card of board {listed(missing)}, whose firmware is expected"
        return Result("fail", summary, "see the PCI bus; or correct `health.nic_firmware`", facts)
    if not cards:
        return Result("absent", "no RDMA card, and none is expected", facts=facts)
    wrong = [
        f"{card} has {version[card]}, not {expected[board[card]]}"
        for card in cards
        if expected.get(board[card], version[card]) != version[card]
    ]
    if wrong:
        return Result("fail", f"firmware: {listed(wrong)}", "`mlxfwmanager` (or `mstflint`), then a power cycle", facts)
    for kind in sorted(set(board.values())):
        versions = sorted({version[card] for card in cards if board[card] == kind})
        if len(versions) > 1:
            summary = f"cards of board {kind} have different firmware: {listed(versions)}"
            return Result("warn", summary, "bring them to one version", facts)
    return Result("pass", f"{counted(len(cards), 'RDMA card')}: {listed(sorted(set(version.values())))}", facts=facts)


CHECK = Check("nic-firmware", "minor", 30, look)
