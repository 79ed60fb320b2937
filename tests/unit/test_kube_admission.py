"""By which Leases admission judges, where the apiserver's answers are made up: races that a real one seldom shows."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client

from netboot.join.errors import ClusterUnavailableError
from netboot.join.leases_seen import LeasesSeen
from netboot.kube.admission import PAUSES, KubeLeasesSeen
from netboot.kube.errors import StatusError

DENIED = "ValidatingAdmissionPolicy 'netboot-leases' with binding 'netboot-leases' denied request: "
AT = "2026-01-01T00:00:00.000000Z"


class Apiserver:
    """One Lease, and admission that has a version of it. Stands where `Connection` does.

    `before`: what happens before each dry run, as somebody else's doing.
    """

    def __init__(self, before: Callable[["Apiserver"], None] = lambda _: None) -> None:
        self.api, self.before = client.ApiClient(), before
        self.lease: dict[str, Any] | None = None
        self.version, self.waited, self.asked = 0, list[float](), 0
        self.knows: Callable[[], int] = lambda: self.version
        self.others = 0
        """Who else writes it in the moment before such a write of ours."""
        self.refusals = list[str]()
        """Of its writes that come next, in these words."""

    def write(self, body: dict[str, Any] | None = None) -> None:
        """A new version of it."""
        self.version += 1
        lease = body or self.lease or {}
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}

    def call(self, operation: Callable[..., Any], *args: Any, expected: tuple[int, ...] = (), dry_run: str = "") -> Any:
        name = operation.__name__
        if name == "read_namespaced_lease":
            return self.lease if self.lease is not None else self.refuse(404, "not found")
        if self.others and not dry_run:
            self.others -= 1
            self.write({"metadata": {}})
        if name == "create_namespaced_lease":
            assert args[0] == "netboot"
            assert self.lease is None or 409 in expected
            return self.write(args[1]) if self.lease is None else self.refuse(409, "it already exists")
        assert (name, args[:2]) == ("replace_namespaced_lease", ("netboot-admission", "netboot"))
        if dry_run:
            self.asked += 1
            self.before(self)
        if self.lease is None or args[2]["metadata"]["resourceVersion"] != str(self.version):
            return self.refuse(409, "the object has been modified")
        if dry_run:
            said = f"netboot-admission is known here as of {AT}, resourceVersion {self.knows()}"
            return self.refuse(422, DENIED + said)
        if self.refusals:
            return self.refuse(422, self.refusals.pop(0))
        return self.write(args[2])

    def refuse(self, status: int, message: str) -> None:
        raise StatusError(status, f'{{"message": "{message}"}}'.encode())

    def seen(self, now_ms: int = 1_767_225_600_000) -> LeasesSeen:
        connection: Any = self
        return KubeLeasesSeen(connection, "netboot", lambda: now_ms, self.waited.append)()


def delete(server: Apiserver) -> None:
    server.lease = None


def test_the_lease_is_no_machines_and_says_when_it_was_written() -> None:
    server = Apiserver()
    assert server.seen() == LeasesSeen("current", AT)
    assert server.lease == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "netboot-admission", "namespace": "netboot", "resourceVersion": "1"},
        "spec": {"holderIdentity": "netboot", "renewTime": AT},
    }
    assert server.seen(1_767_225_600_250) == LeasesSeen("current", AT)
    assert server.lease["spec"]["renewTime"] == "2026-01-01T00:00:00.250000Z"
    assert (server.version, server.waited) == (2, [PAUSES[0]] * 2)


def test_what_is_known_late_is_waited_for_and_what_never_is_for_five_seconds() -> None:
    server = Apiserver()
    server.knows = lambda: server.version if server.asked == 3 else server.version - 1
    assert (server.seen().found, server.waited) == ("current", list(PAUSES[:3]))
    server = Apiserver()
    server.write({"metadata": {}})
    server.knows = lambda: 1
    assert server.seen() == LeasesSeen("older", AT)
    assert (server.asked, 5 < sum(server.waited) < 6) == (len(PAUSES), True)


def test_whoever_else_writes_it_hides_nothing_and_confuses_nobody() -> None:
    def once(server: Apiserver) -> None:
        if server.asked == 1:
            server.write()

    server = Apiserver(once)
    assert (server.seen().found, server.asked) == ("current", 2)
    server = Apiserver(once)
    server.knows = lambda: 1
    assert server.seen().found == "older"


@pytest.mark.parametrize("there", [False, True])
def test_several_that_ask_in_the_same_moment_take_each_other_s_version(*, there: bool) -> None:
    server = Apiserver()
    if there:
        server.write({"metadata": {}})
    server.others = 1
    assert (server.seen(), server.version, server.asked) == (LeasesSeen("current", AT), 1 + there, 1)


def test_where_it_cannot_be_written_a_view_that_stands_still_is_not_taken_for_current() -> None:
    server = Apiserver()
    server.write({"metadata": {}})
    nothing = "no params found for policy binding with `Deny` parameterNotFoundAction"
    server.refusals = [DENIED + nothing] * (len(PAUSES) + 1)
    assert (server.seen(), server.asked) == (LeasesSeen("unknown", nothing), 0)
    server.refusals = [DENIED + "it has not heard of it yet"] * 2
    assert (server.seen().found, server.version) == ("current", 2)


@pytest.mark.parametrize("before", [Apiserver.write, delete])
def test_a_lease_that_never_stands_still_tells_nothing(before: Callable[[Apiserver], None]) -> None:
    with pytest.raises(ClusterUnavailableError) as caught:
        Apiserver(before).seen()
    assert str(caught.value) == "the Lease netboot/netboot-admission is changed or deleted all the time"


def test_one_that_is_deleted_once_is_written_anew() -> None:
    def once(server: Apiserver) -> None:
        if server.asked == 1:
            server.lease = None

    server = Apiserver(once)
    assert (server.seen().found, server.asked) == ("current", 2)


def test_what_refuses_a_lease_and_is_not_ours_is_said_as_it_is() -> None:
    server = Apiserver()
    server.write({"metadata": {}})
    site = "ValidatingAdmissionPolicy 'owners' with binding 'owners' denied request: who owns it?"
    server.refusals = [site]
    with pytest.raises(ClusterUnavailableError) as caught:
        server.seen()
    assert str(caught.value) == f"a change of the Lease netboot-admission is refused, and not by us: {site}"
