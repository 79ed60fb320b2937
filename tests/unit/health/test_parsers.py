"""What comes from the kernel, from tools and from the service never makes a check fall over."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from images.node.health import document, nvidia, pci, rdma, smi, sxid, xid
from images.node.health.checks import (
    bmc_log,
    cables,
    gpu_fabric,
    memory,
    nvlink_errors,
    nvme_smart,
    pcie_errors,
    roce_gids,
)
from images.node.health.expected import MAPS, NUMBERS, WHOLE, read_expected
from images.node.health.machine import Output
from images.node.health.ranges import in_list
from netboot.lifecycle.health import HealthReport
from netboot.machines.health import Health
from tests.unit.health.recorded import recorded
from tests.unit.health.recorded import said as words_of

BYTES = st.binary(max_size=400).map(lambda data: data.decode("utf-8", "replace"))
NEAR = st.sampled_from(
    [
        *(words_of(name) for name in ("nvidia-smi-nvlink.txt", "kmsg.txt", "fabricmanager.txt")),
        *(output.text[:4000] for output in recorded("hgx-h100")[1].values()),
    ]
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """Something recorded with a part of it replaced."""
    whole, piece = draw(NEAR), draw(BYTES)
    start = draw(st.integers(0, len(whole)))
    return whole[:start] + piece + whole[start + draw(st.integers(0, 80)) :]


ANY = st.one_of(BYTES, spoilt())


@given(said=ANY, status=st.integers(-64, 255))
def test_no_parser_raises(said: str, status: int) -> None:
    fields = ("index", "uuid", "name", "pci.bus_id", "driver_version")
    assert all(set(row) == set(fields) for row in nvidia.rows(said, fields))
    for found in nvidia.links(said).values():
        assert all(isinstance(active, bool) for active in found.values())
    assert all(one.weight in ("stop", "look", "program") and one.remedy for one in xid.xids(said.splitlines()))
    assert all(isinstance(value, str) for row in smi.parsed(said) for value in row.values())
    assert isinstance(nvme_smart.smart(said), dict)
    assert set(bmc_log.severe(said)) <= {one[:120] for one in bmc_log.severe(said)}
    for line in said.splitlines():
        assert (message := sxid.sxid(line)) is None or message.weight in ("stop", "look", "corrected")
        cables.event(line)
    nvlink_errors.counters(said)
    pcie_errors.total(said)
    pci.speed(said)
    smi.whole(said)
    assert str(nvidia.refusal(Output(status, said)))
    assert isinstance(rdma.rate(said), float)
    assert rdma.word(said)
    nvidia.number(said)
    nvidia.yes(said)
    in_list(said)
    memory.total(said)
    roce_gids.routable(said)
    gpu_fabric.fabric_version(said)


def test_what_was_recorded_is_understood() -> None:
    assert nvidia.links(words_of("nvidia-smi-nvlink.txt"))["0"][4] is False
    assert sum(nvidia.links(words_of("nvidia-smi-nvlink.txt"))["0"].values()) == 12
    assert [one.code for one in xid.xids(words_of("kmsg.txt").splitlines())] == [31, 13, 63, 79, 79, 62]
    assert gpu_fabric.fabric_version(words_of("fabricmanager.txt")) == "535.161.08"
    assert in_list("0-3,8,10-11") == [0, 1, 2, 3, 8, 10, 11]
    assert rdma.rate("2.5 Gb/sec (1X SDR)") == 2.5
    assert nvidia.rows("0, [N/A], [Not Supported]\n", ("a", "b", "c")) == [{"a": "0", "b": "", "c": ""}]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=10,
)
KEYS = st.sampled_from([*WHOLE, *NUMBERS, "gpu_model", *MAPS, "ports", "dpus"])


@given(said=st.one_of(JSON, st.dictionaries(KEYS, JSON, max_size=6)))
def test_expectations_of_any_form_are_taken_or_named(said: Any) -> None:
    found = read_expected(said, "service")
    if isinstance(said, dict):
        named = {str(key)[:40] for key, value in said.items() if value not in (None, {}, [])}
        refused = {name if name in named else name.partition(".")[0] for name in found.not_understood}
        assert set(found.keys) | refused == named
    else:
        assert found.not_understood == ("(not an object)",)


def test_every_expectation_of_the_inventory_is_known_on_the_machine() -> None:
    declared = Health(
        gpus=8,
        gpu_model="H100",
        nvlinks=18,
        nvswitches=4,
        ib_ports=8,
        ib_rate_gbps=400,
        roce_ports=2,
        nic_firmware={"MT_0000000838": "28.39.2048"},
        nvme=4,
        memory_gib=2048,
        cpus=224,
        pcie_width=16,
        clock_ms=500,
        pcie_gts=32,
        hugepages_2m=0,
        hugepages_1g=16,
        ports=("mlx5_0/1", "enp64s0f0np0"),
        thresholds={"gpu_celsius": 90},
    )
    assert set(declared.model_fields_set) == set(Health.model_fields)
    found = read_expected(json.loads(declared.model_dump_json()), "service")
    assert found.not_understood == ()
    assert found.keys == sorted(Health.model_fields)


RESULT = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["cpus", "own-fan"]),
        "status": st.sampled_from(["pass", "warn", "fail", "unknown", "absent"]),
        "severity": st.sampled_from(["critical", "major", "minor"]),
        "ms": st.integers(0, 10**6),
    },
    optional={"summary": JSON, "remedy": JSON, "facts": st.one_of(JSON, st.dictionaries(st.text(max_size=60), JSON))},
)


@given(one=RESULT, uptime=st.integers(0, 10**12))
def test_whatever_a_check_says_the_service_takes_the_document(one: dict[str, Any], uptime: int) -> None:
    """The two sides are of one mind about the form, and what is within it arrives as it was."""
    made = document.finished("0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d", "gpu-001", "52:54:00:00:00:01", [one], ["cpus"])
    body = document.encoded(made)
    taken = HealthReport.model_validate_json(body)
    (check,) = taken.checks
    assert (check.name, check.status, check.severity) == (one["name"], one["status"], one["severity"])
    assert json.loads(taken.model_dump_json(by_alias=True))["checks"] == made["checks"]
    assert taken.status == document.worst([one])


def test_a_document_that_would_be_too_long_loses_its_longest_facts() -> None:
    long = {"words": ["x" * 200] * 64}
    results = [
        {"name": f"own-{at}", "status": "pass", "severity": "minor", "ms": 1, "summary": "well", "facts": facts}
        for at, facts in enumerate([{"few": 1}, long, long, {**long, "more": "y"}])
    ]
    made = document.finished("0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d", "gpu-001", None, results, [])
    assert len(document.encoded(made)) <= document.LONGEST
    assert [list(one["facts"]) for one in made["checks"]] == [["few"], ["words"], ["words"], ["left_out"]]
    assert HealthReport.model_validate_json(document.encoded(made)).status == "pass"
