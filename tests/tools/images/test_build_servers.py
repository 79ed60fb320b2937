"""debian-12-cpu and debian-12-gpu, built through the command line as the boot tests build them, and what is in them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.artifact.manifest import Manifest
from images.formats import elf
from images.store.store import Store
from lab.kube.recipe import node_recipe
from lab.work import CACHE
from netboot.cli.recipes import load_recipe
from tests.image_keys import image_keys
from tests.tools.images import containerd
from tests.tools.images.image_build import blob, image_build, packages

pytestmark = pytest.mark.tools
MIB = 2**20


class Image:
    """A built image and its root, unpacked."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.folder, self.root = folder, folder / "root"
        shutil.copytree(image_keys(), folder / "keys")
        self.recipe = node_recipe(name, folder / "recipe", CACHE)
        with self.recipe.open("a") as text:
            text.write("budget_mib: 400\n")  # tests say what it must be; the boot tests build with the shipped one
        self.manifest: Manifest = Store(folder / "store").manifest(self.build(*options))
        packed = blob(folder, self.manifest, "root")
        subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-d", str(self.root), str(packed)], check=True)
        self.modules = self.root / f"usr/lib/modules/{self.manifest.kernel_version}"

    def build(self, *options: str) -> str:
        return str(image_build(self.folder, self.recipe, *options)["image"])

    @property
    def packages(self) -> dict[str, str]:
        return packages(self.folder, self.manifest)

    @property
    def mib(self) -> float:
        """What a machine fetches."""
        artifacts = self.manifest.artifacts
        return (artifacts.kernel.size + artifacts.initrd.size + artifacts.root.size) / MIB

    def modprobe(self, name: str) -> list[str]:
        """The module files that modprobe would load for a name or an alias."""
        version = self.manifest.kernel_version
        argv = ["modprobe", "--dirname", str(self.root / "usr"), "--config", str(self.root / "etc/modprobe.d")]
        argv += ["--set-version", version, "--dry-run", "--show-depends", "--use-blacklist", name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return [Path(line.split()[1]).name for line in done.stdout.splitlines() if line.startswith("insmod ")]

    def verify(self, *units: str) -> list[str]:
        """What systemd finds wrong with our own units."""
        argv = ["systemd-analyze", "verify", f"--root={self.root}", "--man=no", *units]
        said = subprocess.run(argv, capture_output=True, text=True, check=False).stderr.splitlines()
        return [line for line in said if "netboot" in line or "nvidia" in line]


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    image = Image(tmp_path_factory.mktemp("cpu"), "debian-12-cpu")
    yield image
    subprocess.run(["rm", "-rf", str(image.root)], check=True)


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    image = Image(tmp_path_factory.mktemp("gpu"), "debian-12-gpu", "--profile", "dev")
    yield image
    subprocess.run(["rm", "-rf", str(image.root)], check=True)


def test_a_cpu_image_is_within_160_mib_and_has_drivers_of_real_cards_in_its_initrd(cpu: Image) -> None:
    assert cpu.mib <= 160
    initrd = blob(cpu.folder, cpu.manifest, "initrd")
    listed = subprocess.run(
        f"zstd -dc {initrd} | cpio --list --quiet", shell=True, capture_output=True, text=True, check=True
    )
    names = {line.rpartition("/")[2] for line in listed.stdout.splitlines()}
    assert {"mlx5_core.ko", "bnxt_en.ko", "ice.ko", "i40e.ko", "ixgbe.ko", "tg3.ko", "virtio_net.ko"} <= names


def test_a_cpu_images_disks_units_are_sound_and_nothing_is_assembled_by_itself(cpu: Image) -> None:
    assert cpu.verify("netboot-disks.service", "var-lib-containerd.mount", "var-lib-kubelet.mount") == []
    wants = {path.name for path in (cpu.root / "etc/systemd/system/local-fs.target.wants").iterdir()}
    assert {"netboot-disks.service", "var-lib-containerd.mount", "var-lib-kubelet.mount"} <= wants
    assert "AUTO -all" in (cpu.root / "etc/mdadm/mdadm.conf").read_text()
    shown = subprocess.run(
        [
            *("unshare", "--mount", "--pid", "--fork", f"--mount-proc={cpu.root}/proc"),  # lvm reads /proc/devices
            *("chroot", str(cpu.root), "lvmconfig", "activation/auto_activation_volume_list"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.strip() == "auto_activation_volume_list=[]"
    for tool in ("mdadm", "vgcreate", "mkfs.ext4", "wipefs", "blkdiscard", "blkid"):
        subprocess.run(["chroot", str(cpu.root), "sh", "-c", f"command -v {tool}"], check=True, capture_output=True)


def test_a_server_has_the_tools_that_health_asks_and_no_perl_for_them(cpu: Image) -> None:
    for tool in ("nvme version", "ipmitool -V", "smartctl --version", "numactl --show", "rasdaemon --help"):
        subprocess.run(["chroot", str(cpu.root), *tool.split()], check=True, capture_output=True)
    assert list((cpu.root / "usr/share/perl").iterdir()) == []
    wanted = {path.name for path in (cpu.root / "etc/systemd/system").glob("*.wants/*")}
    assert "rasdaemon.service" in wanted
    assert not {"smartmontools.service", "smartd.service", "ipmievd.service"} & wanted


def test_a_gpu_image_is_within_330_mib_even_by_the_quick_profile(gpu: Image) -> None:
    """Release is smaller: what holds here holds there."""
    assert gpu.mib <= 330


def test_nvidias_modules_are_of_this_kernel_and_of_the_libraries_version(gpu: Image) -> None:
    driver = gpu.packages["libcuda1"].partition("-")[0]
    for name in ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm"):
        info = elf.modinfo((gpu.modules / f"updates/{name}.ko").read_bytes())
        assert info["vermagic"][0].split()[0] == gpu.manifest.kernel_version
        assert info["version"] == [driver]
    assert {"gsp_ga10x.bin", "gsp_tu10x.bin"} <= {
        path.name for path in (gpu.root / f"usr/lib/firmware/nvidia/{driver}").iterdir()
    }
    for tool in ("nvidia-smi", "nvidia-modprobe", "nvidia-persistenced"):
        subprocess.run(["chroot", str(gpu.root), "sh", "-c", f"command -v {tool}"], check=True, capture_output=True)
    known = subprocess.run(
        ["chroot", str(gpu.root), "ldconfig", "-p"], capture_output=True, text=True, check=True
    ).stdout
    assert {"libcuda.so.1", "libnvidia-ml.so.1"} <= {line.split()[0] for line in known.splitlines()[1:]}
    daemon = gpu.packages["nvidia-persistenced"]
    assert daemon.partition(".")[0] == driver.partition(".")[0]


def test_modprobe_finds_nvidia_for_a_gpu_and_never_nouveau(gpu: Image) -> None:
    h100 = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"
    assert "nvidia.ko" in gpu.modprobe(h100)
    assert "nouveau.ko" not in gpu.modprobe(h100)
    assert gpu.modprobe("nvidia_uvm")[-1] == "nvidia-uvm.ko"
    assert gpu.modprobe("nvidia_drm")[-1] == "nvidia-drm.ko"


def test_rdma_is_whole(gpu: Image) -> None:
    assert gpu.modprobe("mlx5_ib")[-1] == "mlx5_ib.ko"
    assert gpu.modprobe("ib_umad")[-1] == "ib_umad.ko"
    assert {"rdma-core", "ibverbs-providers", "infiniband-diags"} <= gpu.packages.keys()
    for tool in ("ibstat", "ibv_devinfo", "dcb", "udevadm", "mstflint"):
        subprocess.run(["chroot", str(gpu.root), "sh", "-c", f"command -v {tool}"], check=True, capture_output=True)
    assert gpu.verify("netboot-rdma.service", "nvidia-persistenced.service") == []


def test_nothing_of_the_compiler_is_in_a_gpu_image(gpu: Image) -> None:
    compiling = ("gcc", "cpp-", "make", "dkms", "linux-headers", "nvidia-open-kernel-dkms", "binutils")
    assert [name for name in gpu.packages if name.startswith(compiling)] == ["gcc-12-base"], "of libgcc: a licence"
    assert list((gpu.root / "usr/src").iterdir()) == []


def test_debians_containerd_has_the_handler_nvidia_and_knows_no_cdi(cpu: Image) -> None:
    version, settings = containerd.understood(cpu.root, containerd.of_toolkit("debian"))
    assert (version, containerd.handler(settings)) == (2, containerd.HANDLER)
    assert "enable_cdi" not in settings


def test_check_builds_again_in_unlike_surroundings_as_it_ships_and_finds_the_same(cpu: Image) -> None:
    """`image build --check` as it is called, by the profile that debian-12-cpu has, beside the image of the cache,
    which was built from clean by the fixture."""
    assert load_recipe(str(cpu.recipe), None).profile == "release"
    digest = cpu.build()  # from the cache, unless a mirror has published since the fixture
    before = sorted((cpu.folder / "store").rglob("*"))
    result = image_build(cpu.folder, cpu.recipe, "--check")
    assert (result["reproducible"], result["differences"]) == (True, [])
    assert result["image"] == digest
    assert result["not_varied"].keys() <= {"processors"}, "./setup.sh installs what the rest needs"
    steps = [step["step"] for step in result["steps"] if not step["cached"]]
    assert steps.count("bootstrap") == steps.count("root") == 1
    cached = [step["step"] for step in result["steps"] if step["cached"]]
    assert {"bootstrap", "configure", "kernel", "root", "initrd"} <= set(cached)
    assert result["from_cache"] == len(cached)
    assert sorted((cpu.folder / "store").rglob("*")) == before
