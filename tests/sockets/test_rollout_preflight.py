"""What is looked at before a rollout begins, through `netboot rollout start`: domains and budgets, kubelets."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.cli.rollout_shown import started
from netboot.lifecycle.drains import DrainsStatus
from netboot.lifecycle.rollout import RolloutState
from tests.commands import Run
from tests.sites import KUBELET, add_image
from tests.sockets.api import NOW, Api
from tests.sockets.served import runner, served

INVENTORY = f"""\
machines:
{
    chr(10).join(
        f'  - {{name: n{number}, match: {{macs: ["52:54:00:00:00:0{number}"]}}, profile: compute, rack: r{number % 2}}}'
        for number in range(1, 7)
    )
}
  - {{name: n7, match: {{serial: S7}}, profile: compute, rack: r0, topology: {{accelerator_domain: nvl-8}}}}
profiles:
  - {{name: compute, channel: stable}}
channels:
  - {{name: stable}}
racks:
  - {{name: r0}}
  - {{name: r1, topology: {{accelerator_domain: nvl-1}}}}
"""
START = ("rollout", "start", "stable", "next")


def made(root: Path, inventory: str) -> Api:
    api = Api(root, inventory=inventory)
    add_image(api.config, name="next", salt="2", documents=KUBELET)
    api.store.set_channel("stable", add_image(api.config))
    assert api.publisher.step()
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW)})
    return api


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return made(tmp_path, INVENTORY)


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


SPLIT = "so that its turn comes as a whole, or say --split-domains, if its machines may go one by one"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((), "3 machines, and no more than 1 of 7 may be out of service: say --max-unavailable 3 or more, "),
        (
            ("--max-unavailable", "2"),
            "3 machines, and no more than 2 of 7 may be out of service: say --max-unavailable 3 or more, ",
        ),
        (
            ("--max-unavailable", "3", "--per-rack", "2"),
            "3 machines in rack r1, and no more than 2 of a rack may be out of service: say --per-rack 3 or more, ",
        ),
    ],
)
def test_a_domain_that_could_never_go_as_a_whole_is_said_at_once(run: Run, said: tuple[str, ...], words: str) -> None:
    for dry in ((), ("--dry-run",)):
        ran = run(*START, *said, *dry)
        assert (ran.status, ran.err.splitlines()[0]) == (4, f"Error: accelerator domain nvl-1 has {words}{SPLIT}")


def test_the_largest_domain_is_named_so_that_what_is_said_is_enough_for_all(tmp_path: Path) -> None:
    four = INVENTORY.replace("nvl-8", "nvl-0").replace("name: r0}", "name: r0, topology: {accelerator_domain: nvl-0}}")
    answer = made(tmp_path, four).post("/v1/rollouts", {"channel": "stable", "image": "next"})
    assert "accelerator domain nvl-0 has 4 machines, and no more than 1 of 7" in answer.text


def test_machines_of_a_domain_go_together_unless_it_may_be_split(api: Api, run: Run) -> None:
    ran = run(*START, "--max-unavailable", "3", "--per-rack", "3", "--dry-run")
    assert (ran.status, ran.out.splitlines()[2]) == (
        0,
        "machines of one accelerator domain go together: nvl-1 (3)",
    )
    assert run(*START, "--max-unavailable", "3").status == 0
    domains = {name: each.domain for name, each in api.rollouts.members(1).items()}
    in_rack = dict.fromkeys(("n1", "n3", "n5"), "nvl-1")
    assert domains == {**dict.fromkeys(("n2", "n4", "n6"), ""), **in_rack, "n7": "nvl-8"}


def test_in_one_rack_a_domain_is_a_turn(tmp_path: Path) -> None:
    api = made(tmp_path, INVENTORY.replace("rack: r0", "rack: r1"))
    asked = {"channel": "stable", "image": "next", "strategy": {"max_unavailable": "100%"}, "dry_run": True}
    said = list(started(api.post("/v1/rollouts", asked).json, dry_run=True))
    turn = "one machine, or domain, at a time, and the first failure stops it"
    assert said[1:3] == [
        f"its machines are in fewer than two racks, so nothing proves the image: {turn}",
        "machines of one accelerator domain go together: nvl-1 (6)",
    ]


def test_a_domain_that_may_be_split_is_none(api: Api, run: Run) -> None:
    ran = run(*START, "--split-domains")
    assert (ran.status, "domain" in ran.out) == (0, False)
    assert {each.domain for each in api.rollouts.members(1).values()} == {""}
    assert api.rollouts.rollout(1).strategy.split_domains


def test_what_a_channel_says_the_command_line_takes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = dict.fromkeys(("auto_undo", "split_domains", "allow_bare", "allow_local_data"), True)
    api = made(tmp_path, INVENTORY.replace("name: stable}", f"name: stable, strategy: {json.dumps(said)}}}"))
    with served(api) as address:
        run = runner(address, api, capsys, monkeypatch)
        tried = run(*START, "--dry-run", "--output", "json").json
        assert (said.items() <= tried["strategy"].items(), tried["dry_run"]) == (True, True)
        begun = run(*START, "--output", "json").json
        assert (begun["dry_run"], WORDS in run("rollout", "status", "stable").out) == (False, True)
        ended = {"state": RolloutState.COMPLETE, "ended_ms": NOW}
        api.rollouts.change(1, lambda was, members: (was.model_copy(update=ended), members), lambda *_: None)
        assert WORDS not in run("rollout", "status", "stable").out
        options = [f"--no-{name.replace('_', '-')}" for name in said]
        assert run(*START, "--max-unavailable", "3", *options).status == 0
        assert WORDS not in run("rollout", "status", "stable").out
    strategy = api.rollouts.rollout(2).strategy
    assert [getattr(strategy, name) for name in said] == [False] * 4


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ({"state": RolloutState.COMPLETE}, 0),
        ({"state": RolloutState.UNDONE, "undoing": True}, 0),
        ({"state": RolloutState.UNDONE, "undoing": True, "verdict": "2 canaries failed"}, 1),
        ({"state": RolloutState.CANCELLED}, 1),
    ],
)
def test_who_follows_one_that_undid_itself_is_not_told_that_machines_have_the_image(
    api: Api, run: Run, ended: dict[str, object], status: int
) -> None:
    assert run(*START, "--split-domains").status == 0
    api.rollouts.change(1, lambda was, members: (was.model_copy(update=ended), members), lambda *_: None)
    assert run("rollout", "status", "stable", "--follow").status == status


WORDS = "auto-undo       it undoes itself where too many machines fail with the image, in two racks\n"


ANYHOW = "--any-kubelet begins all the same"


UPGRADE = ", or upgrade the control plane of cluster default first"


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (
            "v1.33.9",
            f"newer than a cluster of Kubernetes v1.33.9 (1.30 to 1.33 may join it): choose another image{UPGRADE}",
        ),
        ("v1.38.0", "too old for a cluster of Kubernetes v1.38.0 (1.35 to 1.38 may join it): choose another image"),
    ],
)
def test_a_kubelet_that_the_api_server_would_not_take_is_refused(api: Api, run: Run, server: str, words: str) -> None:
    digest = next(each.digest for each in api.repository.images() if each.name == "next")[:12]
    api.cluster.preconditions.version = server
    start = (*START, "--split-domains")
    for more in ((), ("--dry-run",), ("--on-next-boot",)):
        ran = run(*start, *more)
        assert (ran.status, ran.err.splitlines()[0]) == (
            4,
            f"Error: the kubelet of next {digest} is 1.34.4-1.1, {words}; {ANYHOW}",
        )
    assert api.rollouts.listed(1) == []
    assert run(*start, "--any-kubelet").status == 0


@pytest.mark.parametrize("server", ["v1.34.0", "v1.35.2", "v1.37.1+k3s1"])
def test_a_kubelet_that_it_takes_is_asked_about_and_nothing_said(api: Api, run: Run, server: str) -> None:
    api.cluster.preconditions.version = server
    ran = run(*START, "--split-domains")
    assert (ran.status, ran.err) == (0, "")


def test_what_cannot_be_told_of_a_kubelet_is_refused_too_unless_one_says_so_which_is_noted(
    api: Api, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    digests = {name: add_image(api.config, name=name, documents=each)[:12] for name, each in DOCUMENTS.items()}

    def unknown(image: str) -> str:
        ran = run("rollout", "start", "stable", image, "--split-domains")
        assert ran.status == 4
        before = f"Error: whether cluster default takes the kubelet of {image} {digests[image]} cannot be told: "
        assert ran.err.splitlines()[0].startswith(before)
        return ran.err.splitlines()[0].removeprefix(before)

    listed = f"the list of packages of image {digests['garbled']} cannot be read"
    assert unknown("garbled") == f"{listed}; try again later, or {ANYHOW}"
    assert unknown("bare") == f"none of its packages is a kubelet; choose another image, or {ANYHOW}"
    assert unknown("odd") == f"it is 'latest', and the API server 'v1.34.4'; {ANYHOW}"
    packages = api.store.manifest(next(each.digest for each in api.repository.images() if each.name == "new")).artifacts
    blob = api.store.blob_path(packages.packages.sha256)
    blob.chmod(0o644)
    blob.write_bytes(KUBELET["packages"].replace(b"1.34.4", b"1.33.4"))
    listed = f"the list of packages of image {digests['new']} cannot be read"
    assert unknown("new") == f"{listed}: it is not what was signed; try again later, or {ANYHOW}"
    blob.write_bytes(KUBELET["packages"])
    api.cluster.down = "the apiserver did not answer within 10 s"
    assert unknown("new") == f"the apiserver did not answer within 10 s; try again later, or {ANYHOW}"
    with caplog.at_level(logging.INFO):
        anyhow = ("--split-domains", "--any-kubelet", "--force", "--reason", "CVE-1")
        assert run("rollout", "start", "stable", "new", *anyhow).status == 0
    (entry,) = api.rollouts.history(1, 9)
    assert (entry.act, entry.said) == ("start", "CVE-1; with --any-kubelet and --force")
    (line,) = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "audit"]
    assert (line["act"], line["reason"], line["over"]) == ("rollout-start", "CVE-1", ["--any-kubelet", "--force"])


DOCUMENTS = {
    "garbled": {"packages": b"kubelet"},
    "bare": {"packages": b'[["containerd","2.1.4","amd64"]]'},
    "odd": {"packages": b'[["kubelet","latest","amd64"]]'},
    "new": KUBELET,
}
