"""`netboot machine delete-node` against the API: by uid, never of a machine that works, and a cordon outlives it."""

import logging
from pathlib import Path

import pytest

from netboot.lifecycle.transitions import Mark
from tests.commands import Run
from tests.sockets.api import NOW, Api

DEAD = ("machine", "delete-node", "gpu-001", "--reason", "its power supply is dead")


def there(api: Api) -> bool:
    return "gpu-001" in api.cluster._nodes


def test_the_node_of_a_dead_machine_goes_by_an_operator_s_word(
    api: Api, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.cluster.make_node("gpu-001", ready=False)
    would = run(*DEAD, "--dry-run")
    assert (would.status, would.out, there(api)) == (0, "the Node gpu-001 would be deleted\n", True)
    done = run(*DEAD)
    assert (done.status, done.out, there(api)) == (0, "the Node gpu-001 is deleted\n", False)
    again = run(*DEAD)
    assert (again.status, again.out) == (0, "gpu-001 has no Node: the cluster knows no gpu-001\n")
    audits = [record.fields for record in caplog.records if record.getMessage() == "audit"]  # type: ignore[attr-defined]
    assert [(one["act"], one["operator"], one["uid"] != "") for one in audits] == [
        ("delete-node", "alice", True),
        ("delete-node", "alice", False),
    ]
    assert audits[0]["reason"] == "its power supply is dead"
    assert api.intents.of("gpu-001", NOW) == []


def test_who_works_or_is_not_netboot_s_keeps_its_node(api: Api, run: Run) -> None:
    api.cluster.make_node("gpu-001", ready=True)
    ran = run(*DEAD)
    assert (ran.status, there(api)) == (4, True)
    assert (
        "the Node gpu-001 is Ready, so gpu-001 works: `netboot machine drain gpu-001`, then switch it off; or "
        "`kubectl delete node gpu-001`, if that is meant"
    ) in ran.err
    api.cluster.make_node("gpu-001", ready=False, marked=False)
    ran = run(*DEAD)
    assert (ran.status, there(api)) == (4, True)
    assert "the Node gpu-001 has not the label netboot.dev/managed-by=netboot" in ran.err
    assert run("machine", "delete-node", "nobody", "--reason", "x").status == 3
    assert run("machine", "delete-node", "gpu-001").status == 2, "it wants a reason"
    api.cluster.down = "the apiserver does not answer"
    assert run(*DEAD).status == 5


def test_a_cordon_outlives_it(api: Api, run: Run) -> None:
    node = api.cluster.make_node("gpu-001", ready=False)
    api.cluster.put_node(node._replace(cordoned=True, cordoned_by="kubectl-cordon, 2026-11-23T10:00:00Z"))
    said = "the Node gpu-001 would be deleted, and gpu-001 held, for it is cordoned\n"
    assert (run(*DEAD, "--dry-run").out, api.intents.of("gpu-001", NOW)) == (said, [])
    assert run(*DEAD).out == said.replace("would be", "is")
    [held] = api.intents.of("gpu-001", NOW)
    said = "the Node gpu-001 was cordoned when it was deleted"
    kept = api.get("/v1/audit").json["audit"]
    assert [(one["act"], one["result"]) for one in kept] == [("delete-node", "done"), ("hold", "done")]
    assert (kept[1]["before"], [one["owner"] for one in kept[1]["after"]["intents"]]) == ({"intents": []}, ["cordon"])
    assert (held.mark, held.owner, held.who, held.reason) == (
        Mark.HELD,
        "cordon",
        "kubectl-cordon, 2026-11-23T10:00:00Z",
        said,
    )
    assert not there(api)


def test_where_it_cannot_be_held_the_node_stays(api: Api, run: Run) -> None:
    node = api.cluster.make_node("gpu-001", ready=False)
    api.cluster.put_node(node._replace(cordoned=True))
    api.intents.broken = True
    assert (run(*DEAD).status, there(api)) == (5, True)


def test_another_node_that_registers_at_that_moment_stays(api: Api, run: Run) -> None:
    api.cluster.make_node("gpu-001", ready=False)

    def registers() -> None:
        api.cluster.remove_node("gpu-001")
        api.cluster.make_node("gpu-001", ready=False)

    api.cluster.before["nodes.delete"] = registers
    assert (run(*DEAD).status, there(api)) == (0, True)


def test_a_site_without_clusters_has_no_nodes(tmp_path: Path) -> None:
    api = Api(tmp_path, clusters=False)
    answer = api.post("/v1/machines/gpu-001/delete-node", {"reason": "x"})
    words = "this service knows no cluster: declare `join` and `clusters` in netboot.yaml"
    assert (answer.status_code, answer.json["detail"]) == (400, words)
