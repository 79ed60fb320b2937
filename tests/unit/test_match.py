"""Which machine a claim means."""

from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.match import Found, Index
from netboot.machines.values import Machine, Match

ONE = Machine(
    name="one",
    profile="p",
    match=Match(
        macs=("52:54:00:00:00:01", "52:54:00:00:00:02"), uuid="86a9f546-d31b-4ba2-9bbb-303b61bcf8d1", serial="CZ1"
    ),
)
OTHER = Machine(name="other", profile="p", match=Match(macs=("52:54:00:00:00:03",), serial="CZ2"))
INDEX = Index([ONE, OTHER])


def test_any_one_identifier_suffices() -> None:
    assert INDEX.find("52:54:00:00:00:02", None, None) == [Found(ONE, ("MAC 52:54:00:00:00:02",))]
    assert INDEX.find(None, ONE.match.uuid, None) == [Found(ONE, (f"UUID {ONE.match.uuid}",))]
    assert INDEX.find(None, None, "CZ2") == [Found(OTHER, ("serial CZ2",))]


def test_identifiers_that_agree_name_one_machine() -> None:
    assert INDEX.find("52:54:00:00:00:01", None, "CZ1") == [Found(ONE, ("MAC 52:54:00:00:00:01", "serial CZ1"))]


def test_an_identifier_that_nobody_has_does_not_unmake_a_match() -> None:
    assert INDEX.find("52:54:00:00:00:99", None, "CZ1") == [Found(ONE, ("serial CZ1",))]


def test_identifiers_of_two_machines_find_both() -> None:
    assert INDEX.find("52:54:00:00:00:03", ONE.match.uuid, "CZ1") == [
        Found(OTHER, ("MAC 52:54:00:00:00:03",)),
        Found(ONE, (f"UUID {ONE.match.uuid}", "serial CZ1")),
    ]


def test_nothing_is_nobody() -> None:
    assert INDEX.find(None, None, None) == []
    assert Index([]).find("52:54:00:00:00:01", None, "") == []


def test_by_name_and_by_mac() -> None:
    assert (INDEX.named("one"), INDEX.named("none")) == (ONE, None)
    assert (INDEX.by_mac("52:54:00:00:00:03"), INDEX.by_mac("x")) == (OTHER, None)
    assert len(INDEX) == 2


@given(st.integers(min_value=1, max_value=60), st.data())
def test_every_machine_is_found_by_each_of_its_identifiers(count: int, data: st.DataObject) -> None:
    machines = [
        Machine(
            name=f"m{i}",
            profile="p",
            match=Match(macs=(f"52:54:00:00:{i:02x}:{j:02x}" for j in range(2)), serial=f"S{i}"),
        )
        for i in range(count)
    ]
    index = Index(machines)
    wanted = data.draw(st.sampled_from(machines))
    for mac in wanted.match.macs:
        assert [one.machine for one in index.find(mac, None, wanted.match.serial)] == [wanted]
