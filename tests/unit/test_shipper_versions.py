"""Replicas, definitions and names that do not go together for a while: nobody writes on and on, and all is said."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from netboot.lifecycle.arrivals import AHEAD_MS
from netboot.lifecycle.object_shared import unbelievable
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.phases import Phase
from tests.records import START, boot_id, event, script
from tests.replicas import NAME
from tests.unit.test_shipper_replicas import MANAGER, ApiServer, known, steps

OLDER = {"id", "phase", "proven", "started", "reached", "image", "message"}
"""What an older definition has of a boot."""
ANOTHER = f"status of machine/{NAME} is overwritten: by another replica, of another version: all want the same one"


def ready() -> ApiServer:
    """Where the leader has written how the machine is."""
    api = ApiServer()
    api.passes(2)
    return api


class Prunes(ApiServer):
    """Its definition is older."""

    applied = False

    def write(self, machine: MachineObject, status: Mapping[str, Any], by: str) -> MachineObject:
        kept = dict(status)
        if not self.applied and "boots" in kept:
            kept["boots"] = [{key: each[key] for key in each.keys() & OLDER} for each in kept["boots"]]
        return super().write(machine, kept, by)


def test_a_definition_that_is_older_is_said_and_costs_a_few_writes() -> None:
    api = Prunes()
    api.passes(62)
    a, b, c = api.replicas
    for number, each in enumerate(api.replicas, 1):
        each.says(number, Phase.ATTESTED)
    assert len(api.passes(120)) <= 8
    words = (
        f"status of machine/{NAME} lacks what boots are told by, because of: the API server, whose definition of it is "
        "older: `netboot cluster crds | kubectl apply -f -`"
    )
    for each in api.replicas:
        assert words in each.controller.status().message
    assert known(b, 1) == []
    api.applied = True
    api.heals()
    api.passes(70)
    assert [known(each, number) for each in api.replicas for number in (1, 2, 3)] == [known(a, 1)] * 9
    assert steps(api, 3) == ["ScriptServed", "Attested"]
    assert words not in c.controller.status().message


def test_a_leader_that_is_older_than_another_replica_writes_once_a_minute_and_says_so() -> None:
    api = ready()
    a, b, _ = api.replicas
    a.says(1, Phase.ATTESTED)
    api.passes(2)
    before, end = len(api.writes), api.now + 125
    while api.now < end:
        boots = [each | {"extra": "1"} for each in api.machine.status["boots"]]
        if boots != api.machine.status["boots"]:
            api.becomes({**api.machine.status, "boots": boots})
        api.passes(0.5)
    assert Counter(name for _, name in api.writes[before:])["a"] <= 3
    assert a.controller.status().message == ANOTHER
    assert b.controller.status().ok, "it leaves alone what it cannot read"


def test_facts_that_another_replica_takes_away_again_and_again_are_written_once_a_minute() -> None:
    api = ready()
    _, b, _ = api.replicas
    api.leader = "nobody"
    b.says(1, Phase.ATTESTED)
    api.passes(2)
    without = {key: value for key, value in api.machine.status.items() if key != "boots"}
    api.away = {"a", "c"}
    before = len(api.writes)
    for _ in range(60):
        api.becomes(without, MANAGER)
        api.passes(1)
    assert len(api.writes) - before <= 7
    assert b.controller.status().message == ANOTHER


def test_a_boot_that_is_on_record_under_another_name_is_left_out_and_keeps_nothing_back() -> None:
    api = ready()
    a, b, _ = api.replicas
    for record in (script(NAME, 1), event(NAME, 1, Phase.ATTESTED)):
        b.told(record.model_copy(update={"machine": "old-name"}))
    a.says(1, Phase.ATTESTED)
    api.passes(2)
    assert b.controller.status().message == (
        f"status of machine/{NAME} is not believed: boot {boot_id(NAME, 1)} is on record here as one of old-name: if "
        "it was renamed, that is in force here soon, or is to be said by `former_names`; else somebody made this up"
    )
    b.says(2, Phase.ATTESTED)
    api.passes(7)
    assert steps(api, 2) == ["ScriptServed", "Attested"]
    assert b.controller.status().behind == 0


def test_numbers_that_no_clock_gives_are_said() -> None:
    api = ready()
    api.leader = "nobody"
    _, b, _ = api.replicas
    steps_told = [{"phase": "Attested", "at": 1}]
    told = {"id": boot_id(NAME, 9), "phase": "Attested", "proven": True, "started": "x", "reached": "x"}
    number = str((START + AHEAD_MS + 3_600_000) * 1_000)
    status = {**api.machine.status, "boots": [told | {"since": number, "steps": steps_told}]}
    assert unbelievable(status, START) == (
        f"boot {boot_id(NAME, 9)}: numbered 730 days after now or later, so a clock is wrong (see `timedatectl` of "
        "each replica), or somebody else writes there"
    )
    api.becomes(status, "kubectl")
    api.passes(1)
    assert known(b, 9) == []
    assert "boots" not in api.machine.status, "it is taken out again"
