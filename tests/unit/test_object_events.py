"""What is worth an Event, of what an object said and says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.object_events import News, news
from netboot.lifecycle.object_status import ConditionTold, ObjectStatus, status_of
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from tests.records import boot_id
from tests.unit.test_object_status import FAILED, PROVEN, READY, boot, status

FIRST, SECOND = boot_id("gpu-001", 1), boot_id("gpu-001", 2)
BEGUN = News("Booting", f"boot {FIRST} has begun, with image aaaaaaaaaaaa", good=True)


def served(before: ObjectStatus, reason: Reason) -> ObjectStatus:
    """The same, in service or not for that reason."""
    told = ConditionTold(
        type="InService",
        status=STATUSES[ConditionType.IN_SERVICE][reason],
        reason=reason.value,
        message="its words",
        lastTransitionTime="2026-11-27T16:00:00Z",
    )
    others = [each for each in before.conditions if each.type != "InService"]
    return before.model_copy(update={"conditions": (*others, told)})


READY_NOW = status(boot(1, *READY))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (ObjectStatus(), READY_NOW, ()),
        (READY_NOW, READY_NOW, ()),
        (status(), status(boot(1, Phase.INITRD_STARTED)), (BEGUN,)),
        (status(boot(1, Phase.INITRD_STARTED)), status(boot(1, Phase.BOOTED)), ()),
        (
            status(boot(1, Phase.BOOTED)),
            status(boot(1, *PROVEN)),
            (News("Attested", f"boot {FIRST} proved itself", good=True),),
        ),
        (
            status(boot(1, *PROVEN)),
            READY_NOW,
            (News("Ready", f"the Node of boot {FIRST} is Ready", good=True),),
        ),
        (
            status(boot(1, *PROVEN)),
            status(FAILED),
            (News("Failed", f"boot {FIRST} said that it failed: no route", good=False),),
        ),
        (
            status(boot(1, *PROVEN)),
            status(boot(1, *PROVEN), reason=Reason.STUCK, message="it stands still"),
            (News("Stuck", "it stands still", good=False),),
        ),
        (
            READY_NOW.model_copy(update={"image": READY_NOW.image.model_copy(update={"in_force": "b" * 64})}),
            READY_NOW,
            (News("ImageChanged", "it would be served image aaaaaaaaaaaa now, and bbbbbbbbbbbb before", good=True),),
        ),
        (READY_NOW, served(READY_NOW, Reason.IN_SERVICE), (News("InService", "its words", good=True),)),
        (
            served(READY_NOW, Reason.IN_SERVICE),
            served(READY_NOW, Reason.HELD),
            (News("Held", "its words", good=False),),
        ),
        (served(READY_NOW, Reason.HEALTH_GATED), served(READY_NOW, Reason.NOT_JOINED), ()),
        (
            READY_NOW,
            status_of(None, 1),
            (News("LeftOut", "it is not in force: `netboot config check` says why", good=False),),
        ),
        (status_of(None, 1), status_of(None, 2), ()),
    ],
)
def test_what_is_told(before: ObjectStatus, after: ObjectStatus, told: tuple[News, ...]) -> None:
    assert news(before, after) == told


@given(st.lists(st.sampled_from(list(Phase)), max_size=8), st.lists(st.sampled_from(list(Phase)), max_size=8))
def test_of_whatever_changes_few_things_are_told(one: list[Phase], other: list[Phase]) -> None:
    before, after = status(boot(1, *one)), status(boot(2, *other), boot(1, *one))
    told = news(before, after)
    assert len(told) == len({each.reason for each in told}) <= 3
    assert SECOND in " ".join(each.note for each in told)
