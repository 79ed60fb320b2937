"""What a machine makes of an order on its own Node: which are dead and why, who looks, and what reboots it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.node_files import node_files
from images.node.agent import kubelet
from images.node.orders import __main__ as orders
from images.node.orders import reboot
from images.node.orders.order import DRAIN, ORDER, Here, Verdict, judged
from tests.unit.health.test_status import BOOT, Machine

NOW = 1_767_225_600.0
HERE = Here("gpu-001", BOOT, NOW)
ALIVE = {"machine": "gpu-001", "boot": BOOT, "slot": "5f0c", "what": "reboot", "expires": int(NOW) + 600}
TAINT = {"key": "netboot.dev/drain", "value": "Drained", "effect": "NoSchedule"}
OTHER = "018bcfe5-6800-8fff-bfff-000000000000"


def node(order: Any = ALIVE, *taints: dict[str, str]) -> dict[str, Any]:
    text = order if isinstance(order, str) else json.dumps(order)
    return {"metadata": {"annotations": {ORDER: text}}, "spec": {"taints": list(taints or (TAINT,))}}


def test_an_order_for_this_machine_and_boot_is_alive_on_a_drained_node() -> None:
    assert judged(node(), HERE) == Verdict("5f0c", "")
    assert judged({"metadata": {"name": "gpu-001"}, "spec": {"taints": [TAINT]}}, HERE) is None


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (node(ALIVE | {"machine": "gpu-002"}), "order 5f0c is for gpu-002, and this is gpu-001"),
        (node(ALIVE | {"boot": OTHER}), f"order 5f0c is for boot {OTHER}, and this is boot {BOOT}"),
        (node(ALIVE | {"expires": int(NOW) - 7}), "order 5f0c expired 7 s ago"),
        (node(ALIVE | {"expires": int(NOW)}), "order 5f0c expired 0 s ago"),
        (
            node(ALIVE | {"expires": int(NOW) + 3601}),
            "order 5f0c expires in 3601 s, which is too far away to be believed",
        ),
        (node(ALIVE | {"what": "erase"}), "order 5f0c is to erase, and this image can reboot alone"),
        *(
            (node(ALIVE, taint), f"order 5f0c stands on a Node without the taint {DRAIN}=Drained:NoSchedule")
            for taint in (TAINT | {"value": "Draining"}, TAINT | {"effect": "NoExecute"}, TAINT | {"key": "drain"})
        ),
        (node("{"), "the order on this Node cannot be read"),
        (node(ALIVE | {"expires": True}), "the order on this Node cannot be read"),
        (node({"slot": "5f0c"}), "the order on this Node cannot be read"),
        (node("[" * 1000), "the order on this Node cannot be read"),
        (node(json.dumps(ALIVE | {"more": "x" * 2000})), "the order on this Node cannot be read"),
    ],
)
def test_any_other_order_is_dead_and_why(found: dict[str, Any], why: str) -> None:
    verdict = judged(found, HERE)
    assert verdict is not None
    assert verdict.dead == why


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metadata", "annotations", ORDER, "spec", "taints"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(anything | st.dictionaries(st.sampled_from([*ALIVE, "x"]), anything).map(node))
def test_nothing_that_an_apiserver_may_answer_is_alive_by_chance(found: Any) -> None:
    verdict = judged(found, HERE)
    assert verdict is None or verdict.dead
    assert verdict is None or all(" " <= c <= "~" for c in verdict.dead)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path)
    (tmp_path / "run/netboot/boot.env").write_text(f"BOOT={BOOT}\nNAME=gpu-001\n")
    monkeypatch.setattr("images.node.orders.read.time.time", lambda: NOW)
    yield made
    made.server.shutdown()
    made.server.server_close()


def handed(machine: Machine) -> dict[str, str]:
    return {
        "CREDENTIALS_DIRECTORY": str(machine.handed),
        "RUNTIME_DIRECTORY": str(machine.memory),
        "NODE_NAME": "n1",
    }


def test_it_looks_with_a_quorum_read_says_each_dead_order_once_and_wants_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [{"metadata": {"name": "n1"}}, node(ALIVE | {"boot": OTHER}), node(ALIVE | {"boot": OTHER}), node("{")]
    now = iter([0.0, *(float(n) for n in range(len(looks))), orders.LIFE_SECONDS])
    monkeypatch.setattr(orders, "uptime", lambda: next(now))

    def pause(seconds: float) -> None:
        assert 22 < seconds < 38
        machine.server.node = looks.pop(0)

    assert orders.run(machine.root, handed(machine), pause) == 0
    assert [(path, body) for path, _, _, body in machine.server.asked] == [("/api/v1/nodes/n1", None)] * 4
    assert capsys.readouterr().err.splitlines() == [
        f"netboot-orders: not taken: order 5f0c is for boot {OTHER}, and this is boot {BOOT}",
        "netboot-orders: not taken: the order on this Node cannot be read",
    ]
    assert not (machine.memory / orders.WANTED).exists()


def test_one_that_is_alive_is_wanted_until_what_was_handed_over_is_no_use(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.server.node = node()
    machine.server.answers[:] = [500, 200, 200, 401]
    assert orders.run(machine.root, handed(machine), lambda _: None) == 1
    assert (machine.memory / orders.WANTED).read_text() == "5f0c"
    said = capsys.readouterr().err.splitlines()
    assert "answered 500: it is 500; it is tried again" in said[0]
    assert said[1] == "netboot-orders: order 5f0c is to reboot"
    assert said[2].endswith(" answered 401: it is 401")
    assert len(said) == 3
    (machine.handed / "pair").write_text("torn")
    assert orders.run(machine.root, handed(machine), lambda _: None) == 1


def test_what_reboots_reads_for_itself_and_takes_no_order_twice(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.server.node = {"metadata": {}}
    assert reboot.run(machine.root, handed(machine)) == 1
    machine.server.node = node(ALIVE | {"expires": int(NOW) - 1})
    assert reboot.run(machine.root, handed(machine)) == 1
    machine.server.answers[:] = [500]
    machine.server.node = node()
    assert reboot.run(machine.root, handed(machine)) == 1
    assert [reboot.run(machine.root, handed(machine)) for _ in range(2)] == [0, 1]
    machine.server.node = node(ALIVE | {"slot": "6a1d"})
    assert reboot.run(machine.root, handed(machine)) == 0
    said = [line.removeprefix("netboot-reboot: ") for line in capsys.readouterr().err.splitlines()]
    assert said[2].startswith("not rebooted: https://127.0.0.1:")
    assert [*said[:2], *said[3:]] == [
        "not rebooted: there is no order",
        "not rebooted: order 5f0c expired 1 s ago",
        "rebooting, by order 5f0c",
        "not rebooted: order 5f0c was taken before",
        "rebooting, by order 6a1d",
    ]


def unit(name: str) -> list[str]:
    return next(entry for entry in node_files() if entry.path.endswith(f"/{name}")).content.decode().splitlines()


def test_the_units_give_neither_a_right_and_systemd_reboots_on_success_alone() -> None:
    for name in ("netboot-orders.service", "netboot-reboot.service"):
        lines = unit(name)
        assert {"DynamicUser=yes", "CapabilityBoundingSet=", "NoNewPrivileges=yes"} <= set(lines), name
        assert f"LoadCredential=kubeconfig:{kubelet.KUBECONFIG}" in lines
        assert f"LoadCredential=pair:{kubelet.PAIR}" in lines
        assert f"EnvironmentFile={kubelet.ENVIRONMENT}" in lines
        assert f"ConditionPathExists={kubelet.KUBECONFIG}" in lines
    assert "SuccessAction=reboot" in unit("netboot-reboot.service")
    assert "Type=oneshot" in unit("netboot-reboot.service"), "of another type, a stop would be a success"
    assert not [line for line in unit("netboot-orders.service") if "Action=" in line]
    wanted = f"/run/netboot-orders/{orders.WANTED}"
    assert f"PathExists={wanted}" in unit("netboot-reboot.path")
    assert f"ExecStartPre=+/usr/bin/rm -f {wanted}" in unit("netboot-reboot.service")
    assert "RuntimeDirectory=netboot-orders" in unit("netboot-orders.service")
    assert "Wants=netboot-reboot.path" in unit("netboot-orders.service")
    assert "Wants=netboot-orders.service" in unit("netboot-join.service")
