"""What other replicas told, in both states: in memory and in SQLite."""

import pytest

from netboot.controllers.records import require_known
from netboot.lifecycle.events import HealthRecord, SharedRecord
from netboot.lifecycle.phases import Phase
from tests.contract.test_states import Both, both
from tests.records import START, boot_id, checked, event, script

__all__ = ["both"]
NAME = "gpu-001"
EARLY, LATE = 1_000 * START + 1, 1_000 * (START + 10**9)


def shared(
    number: int, since: int, *phases: Phase, health: HealthRecord | None = None, at_ms: int = START
) -> SharedRecord:
    facts = (script(NAME, number), *(event(NAME, number, each) for each in phases))
    about = {"boot": boot_id(NAME, number), "machine": NAME}
    return SharedRecord(at_ms=at_ms, **about, since=since, facts=facts, arrived=since, health=health)


def counts(both: Both) -> tuple[str, str]:
    state = both.reader.machines([NAME])[NAME]
    return state.current.boot, state.pending.boot if state.pending is not None else ""


def test_what_others_told_is_folded_once_and_counts_by_its_own_number(both: Both) -> None:
    both.take(script(NAME, 2), event(NAME, 2, Phase.ATTESTED))
    both.writer.settle()
    both.take(shared(1, EARLY, Phase.ATTESTED), journal="shipper.db")
    assert counts(both) == (boot_id(NAME, 2), "")
    entries, known = both.reader.feed(0, 100), both.reader.boot(boot_id(NAME, 1))
    both.take(shared(1, EARLY, Phase.ATTESTED), shared(1, EARLY + 5, Phase.ATTESTED), journal="shipper.db")
    assert both.reader.boot(boot_id(NAME, 1)) == known
    assert both.reader.numbers([boot_id(NAME, 1), "x"]) == {boot_id(NAME, 1): (EARLY, 0)}
    assert len(both.reader.feed(0, 100)) == len(entries) == 2, "it was told elsewhere"
    both.take(shared(3, LATE, Phase.ATTESTED), journal="shipper.db")
    assert counts(both) == (boot_id(NAME, 3), "")
    both.take(shared(3, EARLY, Phase.ATTESTED), journal="shipper.db")
    assert counts(both) == (boot_id(NAME, 2), ""), "it proved itself earlier than was known"


def test_a_higher_standing_brings_its_number(both: Both) -> None:
    both.take(shared(1, EARLY, Phase.BOOTED), journal="shipper.db")
    both.take(shared(1, LATE, Phase.BOOTED, Phase.ATTESTED), journal="shipper.db")
    assert both.reader.numbers([boot_id(NAME, 1)]) == {boot_id(NAME, 1): (LATE, 0)}
    both.take(shared(1, EARLY, Phase.BOOTED), journal="shipper.db")
    assert both.reader.numbers([boot_id(NAME, 1)]) == {boot_id(NAME, 1): (LATE, 0)}


def test_what_comes_after_it_is_newer_whatever_clocks_say(both: Both) -> None:
    both.take(shared(5, LATE, Phase.ATTESTED, at_ms=START), journal="shipper.db")
    both.take(script(NAME, 6), event(NAME, 6, Phase.ATTESTED), journal="join-0.db")
    assert counts(both) == (boot_id(NAME, 6), ""), "by our clock it came later, and was read with it"
    both.writer.settle()
    both.take(event(NAME, 7, Phase.BOOTED).model_copy(update={"at_ms": 0}))
    assert counts(both) == (boot_id(NAME, 6), boot_id(NAME, 7))


def test_an_excerpt_takes_the_place_of_no_report_that_is_whole(both: Both) -> None:
    both.take(script(NAME, 1), event(NAME, 1, Phase.ATTESTED), checked(NAME, 1, "fail"))
    arrived = both.reader.numbers([boot_id(NAME, 1)])[boot_id(NAME, 1)][1]
    for number, status in ((arrived - 1, "fail"), (arrived, "fail"), (arrived + 1, "warn")):
        record = shared(1, EARLY, Phase.ATTESTED, health=checked(NAME, 1, "warn"))
        both.take(record.model_copy(update={"arrived": number}), journal="shipper.db")
        assert both.reader.machines([NAME])[NAME].checked.status == status


@pytest.mark.parametrize("journal", ["boot-0.db", "join-0.db", "approver-x.db", "nodes-x.db", "shippers.db"])
def test_it_is_for_the_shipper_alone_to_say_and_nothing_else_is(journal: str) -> None:
    record = shared(1, EARLY, Phase.ATTESTED)
    require_known("shipper.db", record)
    with pytest.raises(ValueError, match="a shared record is not for the owner of this journal to say"):
        require_known(journal, record)
    for fact in (*record.facts, checked(NAME, 1)):
        with pytest.raises(ValueError, match="is not for the owner of this journal to say"):
            require_known("shipper.db", fact)
