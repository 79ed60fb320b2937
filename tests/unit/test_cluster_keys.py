"""`netboot cluster keys rotate`: which step is done, what is written, and what is not done twice."""

import base64
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from netboot.cli import cluster_keys, keys_secret
from netboot.cli.outcomes import CANNOT_TELL, ApiError
from netboot.config_outside import SEALING
from netboot.kube.connection import Connection
from netboot.kube.shared_keys_admin import SharedKeysAdmin
from netboot.lifecycle.shared_keys import InUse, SeenSecret
from netboot.stores.sealing import SEALING as SEALING_KEYS
from netboot.stores.sealing import parsed, text_of
from tests.commands import Ran, Run
from tests.unit.test_shared_keys import key, name, shared_site
from tokens.sealed import Keyset

FIRST = "2026-11-28T22:00:00Z"


class Held:
    """The Secret, and what replicas said, as commands read and write them."""

    def __init__(self, letters: str) -> None:
        self.keys, self.retired, self.made = Keyset(tuple(map(key, letters))), frozenset[str](), dict[str, str]()
        self.said: dict[str, InUse] = {}
        self.forgotten: list[str] = []

    def read(self) -> SeenSecret:
        data = {SEALING: base64.b64encode(text_of(self.keys, SEALING_KEYS)).decode()}
        return SeenSecret("one", "1", data, self.retired, self.made)

    def replicas(self) -> Mapping[str, InUse]:
        return self.said

    def change(
        self, seen: SeenSecret, contents: Mapping[str, bytes], retired: Iterable[str], made: Mapping[str, str]
    ) -> None:
        self.keys = parsed(contents[SEALING], SEALING_KEYS, "it", "")
        self.retired, self.made = frozenset(retired), dict(made)
        self.all_have_it()

    def forget(self, replica: str) -> None:
        self.forgotten.append(replica)

    def all_have_it(self) -> None:
        for replica in self.said:
            self.said[replica] = InUse(at=FIRST, sealing=tuple(self.ids()), sealing_for_seconds=180)

    def ids(self) -> list[str]:
        return [each.id.hex() for each in self.keys.keys]


class Bench:
    def __init__(self, file: Path, run: Run, held: Held) -> None:
        self._file, self._run, self.held = file, run, held

    def rotate(self, *step: str) -> Ran:
        given = ("--admin-kubeconfig", self._file, "--config", self._file)
        return self._run("cluster", "keys", "rotate", "sealing", *step, *given)


@pytest.fixture
def bench(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Bench:
    held = Held("k")
    held.said["a"] = InUse(at=FIRST, sealing=(name("k"),), sealing_for_seconds=900)
    monkeypatch.setattr(keys_secret, "opened", lambda *_: nullcontext(held))
    return Bench(shared_site(tmp_path / "site"), run, held)


def test_promote_given_twice_does_nothing_the_second_time(bench: Bench) -> None:
    assert bench.rotate().status == 0
    old, new = bench.held.ids()
    assert bench.rotate("--promote").status == 0
    assert bench.held.ids() == [new, old]
    for more in ((), ("--dry-run",)):
        again = bench.rotate("--promote", *more)
        words = f"{new} is the newest key and seals already: nothing was done\n"
        assert (again.status, again.out, bench.held.ids()) == (0, words, [new, old])


def test_a_key_is_newer_than_those_that_are_there_also_where_a_clock_is_behind(bench: Bench) -> None:
    bench.held.made = {name("k"): "2999-01-01T00:00:00Z"}
    assert bench.rotate().status == 0
    old, new = bench.held.ids()
    assert bench.held.made == {old: "2999-01-01T00:00:00Z", new: "2999-01-01T00:00:01Z"}
    assert bench.rotate("--promote").status == 0
    assert bench.held.ids() == [new, old]


def test_what_went_is_named_as_retired_and_stays_so(bench: Bench) -> None:
    bench.held.retired = frozenset({"aa"})
    for step in ((), ("--promote",), ("--retire",)):
        assert bench.rotate(*step).status == 0
    assert bench.held.retired == {"aa", name("k")}
    assert set(bench.held.made) == set(bench.held.ids())


def test_with_no_replica_that_said_anything_no_step_is_taken(bench: Bench) -> None:
    bench.rotate()
    before = bench.held.ids()
    bench.held.said.clear()
    for step in ("--promote", "--retire"):
        ran = bench.rotate(step)
        assert ran.status == CANNOT_TELL
        assert ran.err.splitlines()[:2] == ["Error: nothing was done:", "no replica has said which keys it has"]
    assert bench.held.ids() == before


def test_one_that_is_left_out_is_not_waited_for_and_its_word_is_forgotten(bench: Bench) -> None:
    bench.rotate()
    bench.held.said["gone"] = InUse(at=FIRST, sealing=(name("k"),))
    refused = bench.rotate("--promote")
    assert (refused.status, refused.err.splitlines()[1]) == (5, f"gone does not have {bench.held.ids()[1]} yet")
    assert bench.rotate("--promote", "--without", "gone", "--dry-run").status == 0
    assert bench.held.forgotten == []
    assert bench.rotate("--promote", "--without", "gone").status == 0
    assert bench.held.forgotten == ["gone"]


def test_a_step_with_replicas_that_are_not_as_far_is_not_taken() -> None:
    before = Keyset((key("k"), key("a")))
    with pytest.raises(ApiError, match=f"a does not seal with {name('k')} yet"):
        cluster_keys._after(before, SEALING, "retire", {"a": InUse(at=FIRST, sealing=(name("a"),))})
    said = {"a": InUse(at=FIRST, sealing=(name("k"), name("a")), sealing_for_seconds=180)}
    assert cluster_keys._after(before, SEALING, "promote", said) == Keyset((key("a"), key("k")))
    assert cluster_keys._after(before, SEALING, "retire", said) == Keyset((key("k"),))


class Patched(Connection):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.api: Any = None

    def patch(self, path: str, body: Mapping[str, Any], *_: Any, **__: Any) -> Any:
        self.sent.append((path, body))


def test_a_change_is_of_the_secret_as_it_was_seen_and_of_no_other() -> None:
    connection = Patched()
    seen = SeenSecret("uid-1", "17", {})
    SharedKeysAdmin(connection, "netboot", "netboot-keys").change(seen, {SEALING: b"x"}, {"bb", "aa"}, {"cc": FIRST})
    annotations = {"netboot.dev/retired": "aa bb", "netboot.dev/made": f"cc={FIRST}"}
    metadata = {"uid": "uid-1", "resourceVersion": "17", "annotations": annotations}
    assert connection.sent == [
        ("/api/v1/namespaces/netboot/secrets/netboot-keys", {"metadata": metadata, "data": {SEALING: "eA=="}})
    ]
