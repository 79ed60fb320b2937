"""Features: fragments that recipes are composed of; every mistake with its file and its line."""

from pathlib import Path

import pytest

from images.recipe import features, inherit
from images.recipe.inherit import load
from images.recipe.recipe import Recipe
from images.values import strict
from images.values.strict import FaultsError
from tests.unit.images.test_recipe import MINIMAL, faults, write

SHIPPED = (
    "accelerator-other",
    "debug",
    "dpu",
    "gpu",
    "journal-upload",
    "local-nvme",
    "netconsole",
    "nvidia-toolkit",
    "nvswitch",
    "pod-network",
    "rdma",
    "server",
    "server-arm64",
    "slurm",
    "ssh",
    "storage-clients",
    "time",
)
LIST = ", ".join(SHIPPED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.asc").write_text("a key")
    return tmp_path


def with_features(folder: Path, *names: str, text: str = MINIMAL) -> Path:
    return write(folder, f"{text}features: [{', '.join(names)}]\n")


def test_which_features_are_shipped_and_what_they_say_of_themselves() -> None:
    assert features.shipped() == SHIPPED
    assert [name for name in SHIPPED if not features.description(name)] == []


@pytest.mark.parametrize("name", ["gpu", "rdma"])
def test_gpu_and_rdma_pass_devices_through_the_iommu(name: str) -> None:
    assert strict.read(features.SHIPPED / f"{name}.yaml").value["kernel"] == {"arguments": ["iommu=pt"]}


def test_a_feature_that_nobody_has_names_the_nearest(folder: Path) -> None:
    assert faults(with_features(folder, "rdma", "gpus")) == (
        f"mine.yaml:13: features[1]: there is no feature 'gpus'; did you mean 'gpu'? shipped are {LIST}"
    )
    assert faults(with_features(folder, "zzz")) == (
        f"mine.yaml:13: features[0]: there is no feature 'zzz'; shipped are {LIST}"
    )


@pytest.mark.parametrize("name", ["A B", "/etc/passwd.yaml", "../x.yaml", "gpu.yml"])
def test_what_is_neither_a_name_nor_a_path_beside_the_recipe(folder: Path, name: str) -> None:
    assert faults(with_features(folder, f"'{name}'")) == (
        f"mine.yaml:13: features[0]: '{name}' is not a feature's name, or the path of a .yaml file beside the recipe"
    )


def test_a_feature_without_anything_for_this_distribution_suite_or_architecture_says_so(folder: Path) -> None:
    assert faults(with_features(folder, "nvswitch")) == (
        "mine.yaml:13: features[0]: feature 'nvswitch' has nothing for distribution 'debian', only for ubuntu"
    )
    arm = MINIMAL.replace("amd64\nsources", "arm64\nsources").replace("bookworm\n", "trixie\n", 1)
    assert faults(with_features(folder, "gpu", text=arm)) == (
        "mine.yaml:13: features[0]: feature 'gpu' has nothing for architecture 'arm64', only for amd64\n"
        "mine.yaml:13: features[0]: feature 'gpu' has nothing for suite 'trixie', only for bookworm"
    )


def test_mistakes_in_a_recipes_own_feature_have_its_file_and_line(folder: Path) -> None:
    write(
        folder,
        "only: {architecture: [amd64]}\nname: x\nsuite: y\npackages: [A]\nunits:\n  ssh: enable\nfles: {}\n",
        "own.yaml",
    )
    assert faults(with_features(folder, "./own.yaml")) == (
        "own.yaml:1: only.architecture: unknown key; did you mean 'architectures'?\n"
        "own.yaml:2: name: a feature cannot say this; it is for the recipe to say\n"
        "own.yaml:3: suite: a feature cannot say this; it is for the recipe to say"
    )
    write(folder, "packages: [A]\nunits:\n  ssh: enable\nfles: {}\n", "own.yaml")
    assert faults(with_features(folder, "./own.yaml")) == (
        "own.yaml:1: packages[0]: 'A' is not a package "
        "(name, or name=version, or name-{kernel} for the kernel's version)\n"
        "own.yaml:3: units.ssh: 'ssh' is not a systemd unit's whole name, like ssh.service\n"
        "own.yaml:4: fles: unknown key; did you mean 'files'?"
    )
    assert faults(with_features(folder, "./none.yaml")) == (
        f"mine.yaml:13: features[0]: there is no feature file ./none.yaml beside the recipe; shipped are {LIST}"
    )


def test_a_file_that_is_no_mapping_is_no_feature(folder: Path) -> None:
    write(folder, "- a\n", "own.yaml")
    assert faults(with_features(folder, "own.yaml")) == "own.yaml:1: the file must hold a mapping of keys to values"


def compose(folder: Path) -> Recipe:
    """A base with a feature, an heir with another, and one for the distribution; each puts its name into everything."""
    for name in ("base-feature", "own", "own.debian"):
        write(
            folder,
            f"description: of a feature\nkernel: {{arguments: [{name}]}}\nunits: {{x.service: enable}}\n"
            f"files: {{/who: {{content: {name}}}, /{name}: {{content: ''}}}}\nbudget_mib: 300\n",
            f"{name}.yaml",
        )
    write(folder, f"{MINIMAL}features: [base-feature.yaml]\ndescription: base\nepoch: 4\n", "base.yaml")
    return load(
        write(
            folder,
            "base: ./base.yaml\nfeatures: [./own.yaml, base-feature.yaml]\nunits: {x.service: mask}\n"
            "kernel: {arguments: [mine]}\n",
        )
    )


def test_layers_are_bases_with_their_features_then_features_in_order_then_the_recipe(folder: Path) -> None:
    recipe = compose(folder)
    assert recipe.features == ("base-feature.yaml", "./own.yaml")
    assert recipe.kernel.arguments == ("base-feature", "own", "own.debian", "mine")
    assert recipe.units == {"x.service": "mask"}
    assert recipe.files["/who"].content == "own.debian"
    assert {"/base-feature", "/own", "/own.debian"} < recipe.files.keys()
    assert recipe.budget_mib == 300
    assert recipe.description == "base", "a feature describes itself, not the image"


def test_a_base_may_say_otherwise_than_its_feature(folder: Path) -> None:
    write(folder, "budget_mib: 300\npackages: [more]\n", "own.yaml")
    recipe = load(with_features(folder, "own.yaml"))
    assert recipe.budget_mib == 90
    assert recipe.packages == ("more", "systemd")


def test_what_a_feature_names_lies_beside_the_feature(folder: Path) -> None:
    (folder / "parts/tree").mkdir(parents=True)
    (folder / "parts/tree/hello").write_text("from the feature")
    (folder / "parts/other.asc").write_text("another key")
    source = "sources: [{name: extra, url: 'http://x.example', suites: [/], signed_by: other.asc}]\n"
    write(folder, f"overlay: [tree]\n{source}", "parts/own.yaml")
    recipe = load(with_features(folder, "parts/own.yaml"))
    assert [(entry.path, entry.content) for entry in recipe.entries()] == [("/hello", b"from the feature")]
    assert recipe.sources[0].signed_by.read_text() == "another key"


@pytest.mark.parametrize("base", ["debian-12-node", "ubuntu-24.04-node"])
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_feature_is_sound_or_says_that_it_has_nothing(folder: Path, base: str, name: str) -> None:
    path = write(folder, f"base: {base}\nfeatures: [{name}]\n")
    try:
        recipe = load(path)
    except FaultsError as error:
        assert (base, name) == ("debian-12-node", "nvswitch") or name in {"dpu", "server-arm64"}
        assert f"feature '{name}' has nothing for " in str(error)
        return
    assert name in recipe.features
    assert recipe.entries()


NODES = sorted(name for name in inherit.shipped() if "minimal" not in name)


@pytest.mark.parametrize("names", ["accelerator-other", "gpu", "rdma", "slurm", "slurm, rdma, gpu"])
def test_who_registers_memory_may_lock_it(folder: Path, names: str) -> None:
    """One file for each of the two units, whatever features there are; no second place has a limit of its own."""
    recipe = load(write(folder, f"base: debian-12-node\nfeatures: [{names}]\n"))
    units = "/usr/lib/systemd/system"
    assert [entry.path for entry in recipe.entries() if b"LimitMEMLOCK=infinity" in entry.content] == [
        f"{units}/containerd.service.d/20-locked-memory.conf",
        f"{units}/kubelet.service.d/20-locked-memory.conf",
    ]


@pytest.mark.parametrize("base", ["debian-12-gpu", "ubuntu-24.04-gpu"])
def test_one_unit_alone_describes_the_gpus(folder: Path, base: str) -> None:
    """The toolkit's own, from 1.18 on, write the same file (their NVIDIA_CTK_CDI_OUTPUT_FILE_PATH), and fail without a
    GPU: deployments/systemd of NVIDIA/nvidia-container-toolkit."""
    recipe = load(write(folder, f"base: {base}\nfeatures: [nvidia-toolkit]\n"))
    assert {unit: verb for unit, verb in recipe.units.items() if "cdi" in unit} == {
        "netboot-cdi.service": "enable",
        "nvidia-cdi-refresh.service": "mask",
        "nvidia-cdi-refresh.path": "mask",
    }


@pytest.mark.parametrize("name", NODES)
def test_every_node_can_mount_shared_storage(name: str) -> None:
    recipe = load(inherit.find(name))
    modules = {"nfs", "nfsv4", "rpcrdma", "ceph", "rbd", "iscsi_tcp", "cifs", "nbd", "dm_multipath"}
    assert recipe.modules.root is None or modules <= set(recipe.modules.root)
    assert "nfs-common" in recipe.packages
    assert (recipe.units["rpcbind.service"], recipe.units["rpcbind.socket"]) == ("mask", "mask")


@pytest.mark.parametrize("name", NODES)
def test_every_node_has_a_time_service_with_no_servers_of_its_own(name: str) -> None:
    recipe = load(inherit.find(name))
    assert "chrony" in recipe.packages
    assert {recipe.units[unit] for unit in ("chrony.service", "netboot-time.service", "netboot-time.path")} == {
        "enable"
    }
    (conf,) = [entry.content for entry in recipe.entries() if entry.path == "/etc/chrony/chrony.conf"]
    assert [line for line in conf.decode().splitlines() if not line.startswith("#")] == [
        "sourcedir /run/chrony-dhcp",
        "sourcedir /etc/chrony/sources.d",
        "confdir /etc/chrony/conf.d",
        "makestep 1 3",
        "rtcsync",
        "leapsectz right/UTC",
        "maxupdateskew 100.0",
    ]


@pytest.mark.parametrize("name", ["debian-12-cpu", "debian-12-arm64", "ubuntu-24.04-cpu"])
def test_a_server_brings_what_health_asks_and_starts_none_of_it_in_vain(name: str) -> None:
    recipe = load(inherit.find(name))
    assert {"nvme-cli", "ipmitool", "smartmontools", "numactl"} <= set(recipe.packages)
    units = [recipe.units[f"{name}.service"] for name in ("smartmontools", "smartd", "ipmievd")]
    assert units == ["disable", "mask", "mask"]
    with_rasdaemon = "rasdaemon" in recipe.packages
    assert with_rasdaemon == ("/usr/share/perl/5.*" in recipe.remove) == (recipe.architecture == "amd64")


@pytest.mark.parametrize("distribution", ["debian-12", "ubuntu-24.04"])
def test_a_gpu_image_has_rdma_and_no_nouveau(distribution: str) -> None:
    from images.recipe.inherit import find

    recipe = load(find(f"{distribution}-gpu"))
    assert {"mlx5_ib", "ib_umad", "nvidia"} <= set(recipe.requires.root)
    assert "nvidia/*/gsp_ga10x.bin" in recipe.requires.firmware
    assert (recipe.budget_mib, recipe.profile) == (330, "release")
    (quiet,) = [entry.content for entry in recipe.entries() if entry.path == "/etc/modprobe.d/netboot-gpu.conf"]
    assert b"\nblacklist nouveau\n" in quiet
    assert recipe.units["nvidia-persistenced.service"] == "enable"
