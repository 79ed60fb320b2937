"""Who waits for whom between the switch to the root and the kubelet, by all units of ours in an image."""

import pytest

from images.build.node_files import entries_of
from images.recipe import inherit

NODES = ("debian-12-node", "ubuntu-24.04-node", "debian-12-gpu", "ubuntu-24.04-gpu")
OF_ALL = {"systemd-sysctl.service", "containerd.service", "netboot-images.service", "netboot-join.service"}


def units(recipe: str) -> dict[str, list[tuple[str, str]]]:
    """Keys and values of each unit, its drop-ins' with it."""
    entries = (*entries_of(join=True, containers=True), *inherit.load(inherit.find(recipe)).entries())
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        _, _, name = entry.path.partition("/systemd/system/")
        if name:
            lines = [line.partition("=") for line in entry.content.decode().splitlines() if not line.startswith("#")]
            found.setdefault(name.split(".d/")[0], []).extend((key, value) for key, _, value in lines)
    return found


def waits_for(recipe: str, name: str) -> set[str]:
    """What must be started before `name` is: its own After=, and whoever says Before= of it."""
    all_of = units(recipe)
    after = {one for key, value in all_of[name] if key == "After" for one in value.split()}
    before = {
        other for other, keys in all_of.items() for key, value in keys if key == "Before" and name in value.split()
    }
    return after | before


@pytest.mark.parametrize("recipe", NODES)
def test_the_agent_waits_for_no_network_and_no_division_of_memory(recipe: str) -> None:
    """It has its TPM to ask first. rdma.sh alone may take the ports down over which it speaks."""
    cards = {"netboot-rdma.service"} if "gpu" in recipe else set()
    assert waits_for(recipe, "netboot-join.service") == {"sysinit.target", "nss-lookup.target"} | cards


@pytest.mark.parametrize("recipe", NODES)
def test_the_kubelet_waits_for_all_that_it_needs(recipe: str) -> None:
    needed = OF_ALL | {"netboot-memory.service", "netboot-clock.service", "netboot-active.service"}
    waited = waits_for(recipe, "kubelet.service")
    assert needed <= waited
    assert ("gpu" in recipe) == ("netboot-rdma.service" in waited)
    assert (recipe == "ubuntu-24.04-gpu") <= ("netboot-cdi.service" in waited)


@pytest.mark.parametrize("recipe", NODES)
def test_the_kubelet_is_read_ahead_once_containerd_is_up_and_nobody_waits_for_that(recipe: str) -> None:
    found = units(recipe)
    ahead = dict(found["netboot-readahead.service"])
    assert ("Wants", "netboot-readahead.service") in found["containerd.service"]
    assert (ahead["After"], ahead["Before"]) == ("sysinit.target containerd.service", "shutdown.target")
    assert (ahead["ExecStart"], ahead["Nice"]) == ("-/usr/bin/kubelet --version", "10")
    assert ahead["TimeoutStartSec"] == "240", "it fails by this alone, and a machine that is merely slow reports that"
    assert [name for name, keys in found.items() if ("After", "netboot-readahead.service") in keys] == []


@pytest.mark.parametrize("recipe", NODES)
def test_nothing_that_starts_beside_the_agent_has_as_much_of_the_processor(recipe: str) -> None:
    """100 is what systemd.resource-control(5) gives who says nothing."""
    weights = {name: int(dict(keys).get("CPUWeight", "100")) for name, keys in units(recipe).items()}
    assert weights.pop("netboot-join.service") == 1000
    assert max(weights.values()) == 100
