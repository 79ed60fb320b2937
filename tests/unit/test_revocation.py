"""Revoked images: what a bundle may say, what stays in force, and who has to do with an image."""

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from images.artifact.bundle import MOST_REVOKED, SiteBundle, read_bundle
from images.artifact.manifest import Signed, read_signed
from images.errors import CorruptError
from images.values.digests import canonical
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.revocation import UsedChannel, Uses, in_force, uses
from netboot.lifecycle.snapshot import Assignment, Revocations, Snapshot
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.trace import apply
from netboot.machines.values import Channel, Inventory, Machine, Profile
from tests.records import event, script

A, B = "a" * 64, "b" * 64


def bundle(issued: int = 5, *revoked: str) -> SiteBundle:
    url = "http://192.0.2.1"
    return SiteBundle(site="lab", issued=issued, minimum_epoch=0, origins=(url,), report=url, images_revoked=revoked)


def test_a_bundle_without_revocations_keeps_its_bytes() -> None:
    assert b"images_revoked" not in bundle().to_bytes()
    assert f'"images_revoked":["{A}","{B}"],"issued":5,'.encode() in bundle(5, A, B).to_bytes()
    assert read_bundle(bundle(5, A, B).to_bytes()) == bundle(5, A, B)


@pytest.mark.parametrize(
    ("revoked", "words"),
    [
        ([B, A], "must be in ascending order, each digest once"),
        ([A, A], "must be in ascending order, each digest once"),
        ([A.upper()], "must be a SHA-256 digest: 64 lower-case hexadecimal characters"),
        (["a" * 63], "must be a SHA-256 digest: 64 lower-case hexadecimal characters"),
        ([f"{n:064x}" for n in range(MOST_REVOKED + 1)], "should have at most 512 items after validation, not 513"),
        (A, "Input should be a valid array"),
    ],
)
def test_a_list_that_two_parsers_could_read_differently_is_refused(revoked: object, words: str) -> None:
    value = json.loads(bundle(5, A).to_bytes()) | {"images_revoked": revoked}
    with pytest.raises(CorruptError) as caught:
        read_bundle(canonical(value))
    assert words in str(caught.value)


@pytest.mark.parametrize("revoked", [[], None])
def test_a_list_of_nothing_is_no_list(revoked: object) -> None:
    value = json.loads(bundle().to_bytes()) | {"images_revoked": revoked}
    with pytest.raises(CorruptError):
        read_bundle(canonical(value))


class Before(Signed):
    """The keys that every bundle has."""

    called = "a site bundle"
    schema_: Annotated[Literal["netboot.dev/site/v1"], Field(alias="schema")] = "netboot.dev/site/v1"
    site: str
    issued: int
    minimum_epoch: int
    origins: tuple[str, ...]
    report: str
    join_url: str | None = None
    join_authorities: tuple[str, ...] = ()


def test_a_netboot_of_before_knows_no_bundle_that_revokes() -> None:
    """It says so, and does not pass over the key; nothing is otherwise for it where there are no revocations."""
    assert read_signed(bundle().to_bytes(), Before).issued == 5
    with pytest.raises(CorruptError, match="not a site bundle: images_revoked: Extra inputs are not permitted"):
        read_signed(bundle(5, A).to_bytes(), Before)


@pytest.mark.parametrize(
    ("seen", "after"),
    [
        (None, Revocations(issued=5, images=(A,))),
        (bundle(4), Revocations(issued=5, images=(A,))),
        (bundle(4, B), Revocations(issued=5, images=(A,))),
        (bundle(6, A, B), Revocations(issued=6, images=(A, B))),
        (bundle(6), Revocations()),
    ],
)
def test_the_newest_bundle_that_was_seen_is_in_force(seen: SiteBundle | None, after: Revocations) -> None:
    assert in_force(Revocations(issued=5, images=(A,)), seen) == after


class Pointed:
    """Channels of a store."""

    def channel(self, name: str) -> str | None:
        return {"stable": B, "next": A}[name]


def test_who_boots_an_image_goes_by_rollouts_and_who_runs_it_also_by_a_boot_under_way() -> None:
    machines = tuple(
        Machine.model_validate(
            {"name": name, "match": {"serial": name}, "profile": profile, "enabled": name != "disabled"}
        )
        for name, profile in (
            ("assigned", "p"),
            ("disabled", "q"),
            ("forgotten", "p"),
            ("moved", "q"),
            ("pointed", "q"),
            ("retired", "q"),
            ("stable", "p"),
        )
    )
    inventory = Inventory(
        machines=machines,
        profiles=(Profile(name="p", channel="stable"), Profile(name="q", channel="next")),
        channels=(Channel(name="stable"), Channel(name="next")),
    )
    assigned = {"assigned": Assignment(image=A, rollout=1), "moved": Assignment(image=B, rollout=2)}
    empty: dict[str, Any] = {"channels": {}, "unusable": {}, "images": {}, "origins": ()}
    snapshot = Snapshot(site="lab", published_ms=1, inventory=inventory, assigned=assigned, url="http://a", **empty)
    boots = {name: apply(None, script(name, 1)) for name in ("moved", "stable")}
    states = {
        "moved": MachineState(machine="moved", current=boots["moved"]),
        "stable": MachineState(machine="stable", pending=boots["stable"]),
        "forgotten": MachineState(machine="forgotten", current=apply(None, event("forgotten", 1, Phase.BOOTED))),
    }
    repository: Any = Pointed()
    assert uses(A, snapshot, repository, states, {"retired"}) == Uses(
        image=A,
        channels=(
            UsedChannel(name="stable", image=B, pinned=False, assigned=1),
            UsedChannel(name="next", image=A, pinned=False, assigned=0),
        ),
        boots=("assigned", "pointed"),
        runs=("forgotten", "moved", "stable"),
    )
