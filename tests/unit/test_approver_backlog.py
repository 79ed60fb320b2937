"""What the approver keeps of requests in memory: within bounds, and within a share of them for each requester."""

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.approver.backlog import Backlog, Recent
from netboot.kube import requests as adapter
from tests.kubelets import renewal


def taken(backlog: Backlog) -> list[str]:
    """All that is due, each carried out."""
    names = []
    while (task := backlog.take() if len(backlog) else None) is not None:
        names.append(task.csr.name)
        backlog.done(task)
    return names


def test_one_requester_has_a_share_and_no_more() -> None:
    """A node that makes thousands of requests keeps no other waiting; what it made beyond comes with the next round."""
    backlog = Backlog(most=100, share=8)
    for number in range(1_000):
        backlog.put(renewal("loud", name=f"loud-{number}"))
    for number in range(20):
        backlog.put(renewal(f"quiet-{number}"))
    assert len(backlog) == 28
    assert taken(backlog) == [f"loud-{number}" for number in range(8)] + [f"csr-quiet-{number}" for number in range(20)]
    backlog.put(renewal("loud", name="loud-8"))
    assert taken(backlog) == ["loud-8"]


def test_what_is_forgotten_while_it_is_in_hand_does_not_come_back_unless_it_is_put_anew() -> None:
    backlog = Backlog()
    csr = renewal("one")
    backlog.put(csr)
    task = backlog.take()
    assert task is not None
    backlog.forget(csr)
    backlog.again(task, 0.0, failed=False)
    assert len(backlog) == 0
    backlog.put(csr)
    task = backlog.take()
    assert task is not None
    backlog.forget(csr)
    backlog.put(csr._replace(version="9"))
    backlog.again(task, 0.0)
    task = backlog.take()
    assert task is not None
    assert task.csr.version == "9"
    backlog.again(task, 0.0)
    assert taken(backlog) == ["csr-one"]


def test_what_was_put_again_counts_once() -> None:
    backlog = Backlog(share=2)
    for version in range(10):
        backlog.put(renewal("one", version=str(version)))
    backlog.put(renewal("one", name="second"))
    backlog.put(renewal("one", name="third"))
    task = backlog.take()
    assert task is not None
    assert (task.csr.name, task.csr.version) == ("csr-one", "9")
    backlog.again(task, 0.0)
    assert sorted(taken(backlog)) == ["csr-one", "second"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 2), st.booleans()), max_size=60),
    st.integers(1, 5),
)
def test_no_requester_ever_has_more_than_its_share(events: list[tuple[str, int, int, bool]], share: int) -> None:
    backlog = Backlog(most=12, share=share)
    for user, number, version, take in events:
        backlog.put(renewal(user, name=f"{user}-{number}", version=str(version)))
        if take and (task := backlog.take()) is not None:
            backlog.done(task)
        left = [task.csr for task in backlog._tasks.values()]
        assert len(left) <= 12
        for other in "abc":
            assert sum(csr.username == f"system:node:{other}" for csr in left) <= share


def as_recorded(**spec: Any) -> dict[str, Any]:
    plain = {"signerName": adapter.SIGNERS[0], "username": "system:node:n", "request": "", "usages": []}
    return {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}, "spec": plain | spec}


def test_an_entry_is_bounded_in_bytes() -> None:
    """A request may have a megabyte and a half (etcd's limit); what is longer than any kubelet's is none."""
    fits, long = b"x" * 12_288, b"x" * 12_289
    for pem, kept in ((fits, fits), (long, b""), (b"x" * 1_400_000, b"")):
        text = base64.b64encode(pem).decode()
        request = as_recorded(request=text, usages=["client auth"] * 100_000) | {"status": {"certificate": text}}
        csr = adapter._csr(request)
        assert (csr.pem, csr.certificate, len(csr.usages)) == (kept, kept, 32)


def test_what_was_said_lately_is_the_latest_of_those_that_were_not_forgotten() -> None:
    now = [0.0]
    recent = Recent(60, monotonic=lambda: now[0])
    assert recent.latest() is None
    recent.say("a", "words of a")
    now[0] = 10.0
    recent.say("b", "words of b")
    assert recent.latest() == "words of b"
    recent.forget("b")
    recent.forget("b")
    assert recent.latest() == "words of a"
    now[0] = 59.9
    assert recent.latest() == "words of a"
    now[0] = 60.0
    assert recent.latest() is None
