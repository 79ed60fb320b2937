"""What makers say of their messages, each word: a code that is lost from a table is a GPU that nobody looks at."""

import pytest

from images.node.health import sxid, xid
from images.node.health.checks import bmc_log

ACTIONS = {
    "RESET_GPU": (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158),
    "RESTART_BM": (79,),
    "CHECK_MECHANICALS": (54,),
    "WORKFLOW_XID_48": (48,),
    "WORKFLOW_NVLINK_ERR": (74,),
}
"""Immediate actions before which nothing runs on the GPU, as the catalogue has them (see `images.node.health.xid`)."""
OF_PROGRAMS = (
    *(
        8,
        11,
        13,
        14,
        25,
        31,
        32,
        37,
        38,
        39,
        40,
        41,
        43,
        44,
        45,
        60,
        63,
        66,
        67,
        68,
        69,
        70,
        71,
        72,
        75,
        76,
        77,
        80,
        82,
    ),
    *(83, 84, 85, 86, 88, 89, 92, 94, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 126, 127, 128, 129),
    *(129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 152, 153),
)
"""RESTART_APP and IGNORE."""
REMEDIES = {
    "RESET_GPU": "drain the node and reset the GPU",
    "RESTART_BM": "drain the node and power-cycle it",
    "CHECK_MECHANICALS": "power it off, and see the GPU's power connectors",
    "WORKFLOW_XID_48": "see gpu-ecc; drain the node and reset the GPU",
    "WORKFLOW_NVLINK_ERR": "drain the node and reset all its GPUs",
}
SEVERE = (
    "Uncorrectable ECC",
    "Non-recoverable",
    "Upper Critical going high",
    "Failure detected",
    "Power Supply AC lost",
    "PCI PERR",
    "PCI SERR",
    "Bus Fatal Error",
    "Bus Uncorrectable Error",
    "IERR",
    "Thermal Trip",
    "Predictive Failure",
    "Redundancy Lost",
    "Drive Fault",
)
"""Of IPMI 2.0, table 42-3, in the words of ipmitool."""


def of(code: int, text: str = "pid=1, name=x") -> xid.Xid:
    found = xid.xid(f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}")
    assert found is not None
    return found


@pytest.mark.parametrize(("action", "code"), [(action, code) for action, codes in ACTIONS.items() for code in codes])
def test_an_xid_before_whose_mending_nothing_runs_on_the_gpu(action: str, code: int) -> None:
    assert (of(code).weight, of(code).remedy.startswith(REMEDIES[action])) == ("stop", True)


def test_an_xid_of_any_other_code() -> None:
    """144 to 150: as the message says; 154: as the driver says. What is in no list is to be looked at."""
    known = {code for codes in ACTIONS.values() for code in codes}
    weights = {code: of(code).weight for code in range(1, 1000) if code not in known}
    assert {code for code, weight in weights.items() if weight == "program"} == set(OF_PROGRAMS)
    assert {weight for code, weight in weights.items() if code not in OF_PROGRAMS} == {"look"}
    fatal = {code for code in weights if of(code, "NETIR Fatal Link 1").weight == "stop"}
    assert fatal == set(range(144, 151))


def test_an_sxid_that_was_corrected() -> None:
    found = {
        code
        for code in range(100_000)
        if (said := sxid.sxid(f"nvidia-nvswitch3: SXid (PCI:0000:c3:00.0): {code}, Non-fatal, Link 1")) is not None
        and said.weight == "corrected"
    }
    assert found == {
        *(
            11012,
            11021,
            11022,
            11023,
            12021,
            12023,
            15008,
            15011,
            19049,
            19055,
            19057,
            19059,
            19062,
            19065,
            19068,
            19071,
        ),
        *(22013, 24001, 24002, 24003),
    }


@pytest.mark.parametrize("words", SEVERE)
def test_an_entry_of_a_bmc_s_log_that_says_that_something_broke(words: str) -> None:
    line = f"  1a | 11/24/2026 | 08:00:00 | Sensor #0x53 | {words} | Asserted"
    assert bmc_log.severe(line) == [f"Sensor #0x53 {words}"]
    assert bmc_log.severe(line.replace("Asserted", "Deasserted")) == []


@pytest.mark.parametrize(
    "words", ["Correctable ECC", "Log area reset/cleared", "Presence detected", "Limit Not Exceeded"]
)
def test_an_entry_of_a_bmc_s_log_that_says_nothing_of_the_kind(words: str) -> None:
    assert bmc_log.severe(f"  1a | 11/24/2026 | 08:00:00 | Sensor #0x53 | {words} | Asserted") == []
