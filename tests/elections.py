"""The Lease of an election in memory, and what it and the Kubernetes adapter both do: `CASES`, run over a `Ground` by
`tests/contract/test_elections.py`, and over a real API server by `tests/cluster/test_leaders.py`."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import pytest

from netboot.join.errors import ClusterUnavailableError, ConflictError, ElectionRefusedError
from netboot.lifecycle.election import Lease, Leases

ABSENT = (
    "there is no Lease netboot-leaders/approver, by which replicas elect who leads: "
    "`netboot cluster manifests | kubectl apply -f -`"
)


@dataclass
class FakeElection:
    """`netboot.controllers.elector.Leases`. `down`: why nobody is answered; `refused`: why it is not for this account;
    `lost`: so many writes take effect, and their answers get lost."""

    down: str = ""
    refused: str = ""
    lost: int = 0
    there: Lease | None = field(default_factory=lambda: Lease("uid-1", "1"))
    writes: list[Lease] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock, self._versions = threading.Lock(), 1

    def read(self) -> Lease:
        with self._lock:
            return self._found()

    def write(self, lease: Lease) -> Lease:
        with self._lock:
            found = self._found()
            if (found.uid, found.version) != (lease.uid, lease.version):
                raise ConflictError("the Lease netboot-leaders/approver was written by somebody else")
            self.put(lease)
            self.writes.append(lease)
            if self.lost:
                self.lost -= 1
                raise ClusterUnavailableError("the apiserver lab did not answer within 5 s")
            assert self.there is not None
            return self.there

    def put(self, lease: Lease) -> None:
        """Somebody writes it, whatever is there."""
        self._versions += 1
        self.there = lease._replace(version=str(self._versions))

    def remake(self) -> None:
        """Somebody deletes it, and makes it anew."""
        self._versions += 1
        self.there = Lease(f"uid-{self._versions}", str(self._versions))

    def wipe(self) -> None:
        """Somebody takes out what it says."""
        assert self.there is not None
        self.put(Lease(self.there.uid, ""))

    def touch(self) -> None:
        """Somebody annotates it."""
        assert self.there is not None
        self.put(self.there)

    def remove(self) -> None:
        """Somebody deletes it."""
        self.there = None

    def _found(self) -> Lease:
        if self.down:
            raise ClusterUnavailableError(self.down)
        if self.refused:
            raise ElectionRefusedError(self.refused)
        if self.there is None:
            raise ElectionRefusedError(ABSENT)
        return self.there


class Ground(Protocol):
    """The Lease as an account of the service has it, and what an administrator does beside."""

    @property
    def leases(self) -> Leases:
        """The port."""
        ...

    def wipe(self) -> None: ...

    def remake(self) -> None: ...

    def touch(self) -> None: ...

    def remove(self) -> None: ...


def held(ground: Ground) -> Lease:
    """Somebody leads."""
    wanted = ground.leases.read()._replace(
        holder="a_1", transitions=7, seconds=15, acquired="2026-11-28T08:00:00.000000Z",
        renewed="2026-11-28T08:00:10.123456Z",
    )  # fmt: skip
    return ground.leases.write(wanted)


def a_lease_of_the_manifests_names_nobody(ground: Ground) -> None:
    lease = ground.leases.read()
    assert lease == Lease(lease.uid, lease.version)
    assert lease.uid
    assert not lease.free


def what_is_written_comes_back(ground: Ground) -> None:
    before = ground.leases.read()
    written = held(ground)
    assert written == Lease(
        before.uid, written.version, "a_1", 7, 15, "", "2026-11-28T08:00:00.000000Z", "2026-11-28T08:00:10.123456Z"
    )
    assert written.version != before.version
    assert ground.leases.read() == written


def who_lets_go_says_so_until_somebody_leads(ground: Ground) -> None:
    lease = held(ground)
    free = ground.leases.write(lease._replace(holder="", released="a_1"))
    assert free.free
    assert ground.leases.read() == free
    taken = ground.leases.write(free._replace(holder="b_2", transitions=8, released=""))
    assert (taken.holder, taken.released, taken.free) == ("b_2", "", False)


def of_two_who_write_one_wins(ground: Ground) -> None:
    lease = held(ground)
    ground.leases.write(lease._replace(holder="b_2"))
    with pytest.raises(ConflictError) as caught:
        ground.leases.write(lease._replace(holder="c_3"))
    assert str(caught.value) == "the Lease netboot-leaders/approver was written by somebody else"
    assert ground.leases.read().holder == "b_2"


def what_others_write_makes_another_version(ground: Ground) -> None:
    lease = held(ground)
    ground.touch()
    found = ground.leases.read()
    assert found.version != lease.version
    assert found._replace(version=lease.version) == lease


def one_that_was_wiped_names_nobody_and_nobody_let_go_of_it(ground: Ground) -> None:
    lease = held(ground)
    ground.wipe()
    found = ground.leases.read()
    assert found == Lease(lease.uid, found.version)
    assert not found.free


def one_that_is_gone_is_said_and_never_made(ground: Ground) -> None:
    lease = held(ground)
    ground.remove()
    for call in (ground.leases.read, lambda: ground.leases.write(lease)):
        with pytest.raises(ElectionRefusedError) as caught:
            call()
        assert str(caught.value) == ABSENT


def one_that_was_made_anew_is_another(ground: Ground) -> None:
    lease = held(ground)
    ground.remake()
    with pytest.raises(ConflictError):
        ground.leases.write(lease)
    assert ground.leases.read().uid != lease.uid


CASES: list[Callable[[Ground], None]] = [
    a_lease_of_the_manifests_names_nobody,
    what_is_written_comes_back,
    who_lets_go_says_so_until_somebody_leads,
    of_two_who_write_one_wins,
    what_others_write_makes_another_version,
    one_that_was_wiped_names_nobody_and_nobody_let_go_of_it,
    one_that_is_gone_is_said_and_never_made,
    one_that_was_made_anew_is_another,
]
