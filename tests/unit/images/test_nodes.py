"""The shipped recipes of nodes: what must be as the kubelet, containerd and the agent want it."""

import json
import tomllib
from typing import Any

import pytest
import yaml

from images.build.node_files import node_files
from images.formats.overlay import Entry
from images.recipe import inherit
from images.recipe.recipe import Recipe
from lab.kube.repository import PLUGINS

NODES = ("debian-12-node", "ubuntu-24.04-node")
DEMOS = tuple(f"{name}-demo" for name in NODES)


def loaded(name: str) -> Recipe:
    return inherit.load(inherit.find(name))


def entry(name: str, path: str) -> Entry:
    return next(entry for entry in loaded(name).entries() if entry.path == path)


def containerd(name: str) -> Any:
    return tomllib.loads(entry(name, "/etc/containerd/config.toml").content.decode())


@pytest.mark.parametrize("name", NODES + DEMOS)
def test_the_kubelet_is_the_kubernetes_projects_and_signed(name: str) -> None:
    recipe = loaded(name)
    (source,) = [source for source in recipe.sources if source.name == "kubernetes"]
    assert (source.url, source.suites, source.components) == (
        "https://pkgs.k8s.io/core:/stable:/v1.34/deb",
        ("/",),
        (),
    )
    assert source.signed_by.read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    assert recipe.join
    assert recipe.units["kubelet.service"] == "disable"
    assert {"kubelet", "containerd", "runc", "kubernetes-cni", "python3-cryptography"} <= set(recipe.packages)
    assert "containernetworking-plugins" not in recipe.packages, "a second set of plugins"


def test_debian_and_ubuntu_have_the_same_packages_and_files() -> None:
    debian, ubuntu = (loaded(name) for name in NODES)
    assert set(debian.packages) - set(ubuntu.packages) == {"usr-is-merged"}
    assert debian.entries() == ubuntu.entries()
    assert debian.units == ubuntu.units


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_differs_by_its_cni_and_its_sandbox_image(name: str) -> None:
    node = name.removesuffix("-demo")
    theirs = {entry.path: entry for entry in loaded(node).entries()}
    ours = {entry.path: entry for entry in loaded(name).entries()}
    assert {path for path in ours if theirs.get(path) != ours[path]} == {
        "/etc/cni/net.d/10-demo.conflist",
        "/etc/containerd/config.toml",
    }
    plain, demo = containerd(node), containerd(name)
    cri = "io.containerd.grpc.v1.cri"
    assert demo["plugins"][cri].pop("sandbox_image") == "localhost/pause:1"
    assert plain["plugins"][cri].pop("sandbox_image").startswith("registry.k8s.io/pause:")
    assert plain == demo


@pytest.mark.parametrize("name", NODES + DEMOS)
def test_no_file_of_a_recipe_lies_where_the_package_of_plugins_has_its_own(name: str) -> None:
    assert [path.path for path in loaded(name).entries() if path.path.startswith("/opt/cni/")] == []


def test_the_demos_plugins_are_those_that_stay_of_the_package() -> None:
    network = json.loads(entry(DEMOS[0], "/etc/cni/net.d/10-demo.conflist").content)
    wanted = {plugin["type"] for plugin in network["plugins"]} | {network["plugins"][0]["ipam"]["type"], "loopback"}
    assert wanted <= set(PLUGINS)
    assert not {f"/opt/cni/bin/{name}" for name in wanted} & set(loaded(DEMOS[0]).remove)


@pytest.mark.parametrize("name", ["containerd", "kubelet"])
def test_state_is_a_tmpfs_of_its_own(name: str) -> None:
    unit = entry(NODES[0], f"/usr/lib/systemd/system/var-lib-{name}.mount").content.decode()
    assert f"What=tmpfs\nWhere=/var/lib/{name}\nType=tmpfs\n" in unit
    assert "size=" in unit and "%" in unit
    service = entry(NODES[0], f"/usr/lib/systemd/system/{name}.service.d/10-netboot.conf").content.decode()
    assert f"RequiresMountsFor=/var/lib/{name}\n" in service


def test_the_kubelet_reads_what_the_agent_writes() -> None:
    from images.node.agent import kubelet

    unit = entry(NODES[0], "/usr/lib/systemd/system/kubelet.service.d/10-netboot.conf").content.decode()
    assert f"ConditionPathExists={kubelet.KUBECONFIG}\n" in unit
    assert f"EnvironmentFile={kubelet.ENVIRONMENT}\n" in unit
    assert f"--kubeconfig={kubelet.KUBECONFIG} " in unit
    assert f"--config-dir={kubelet.DROP_IN.rpartition('/')[0]} " in unit
    assert f"--cert-dir={kubelet.PAIR.rpartition('/')[0]} " in unit
    said = yaml.safe_load(entry(NODES[0], "/etc/kubernetes/kubelet.yaml").content)
    assert said["authentication"]["x509"]["clientCAFile"] == kubelet.CA
    assert (said["rotateCertificates"], said["serverTLSBootstrap"], said["cgroupDriver"]) == (True, True, "systemd")
    join = next(entry for entry in node_files() if entry.path.endswith("/netboot-join.service")).content.decode()
    assert "Wants=kubelet.service\n" in join
    assert "Before=shutdown.target kubelet.service\n" in join
