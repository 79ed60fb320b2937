"""For each gate a recipe that trips it, through the real build, and the whole message.

Heirs of debian-12-minimal: what is installed comes from the cache, the rest is built in a folder that goes again.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.build.cache import Cache
from images.build.pipeline import Built, build
from images.build.sources import Mirror, probe
from images.errors import ImageError, RecipeError
from images.recipe import inherit
from images.recipe.recipe import Source
from images.values.finding import BudgetError
from lab.work import ROOT
from tests.tools.images.image_build import BUILD_CACHE, run_image_build
from tests.unit.images.elf_samples import module, program
from tests.unit.images.samples import KEY
from tests.unit.images.test_gates_logins import PLANTED

pytestmark = pytest.mark.tools

KEYS = {"test.pub": KEY.public.to_bytes()}
DRIVER = "580.95.05"


class Silent:
    """A build that nobody watches; which of its steps were made is written down."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def begin(self, step: str) -> None:
        pass

    def line(self, step: str, text: str) -> None:
        pass

    def end(self, step: str, seconds: float, *, cached: bool) -> None:
        if not cached:
            self.made.append(step)


@dataclass(frozen=True)
class Kitchen:
    """The shipped recipe, built, and a cache for its heirs that has all of it."""

    base: Built
    cache: Cache
    folder: Path
    another: Path
    """A second such cache, for other processes."""

    @property
    def kernel(self) -> str:
        return self.base.manifest.kernel_version

    def build(self, recipe: str, **beside: bytes) -> Built:
        """Build an heir of debian-12-minimal; `{kernel}` stands for its kernel's version, `beside` for files there."""
        for name, data in beside.items():
            (self.folder / name).write_bytes(data)
        path = self.folder / "mine.yaml"
        path.write_text("base: debian-12-minimal\n" + recipe.replace("{kernel}", self.kernel), encoding="utf-8")
        silent = Silent()
        try:
            return build(inherit.load(path), KEYS, self.cache, silent)
        finally:
            assert "bootstrap" not in silent.made, "an heir that installs anything costs minutes"

    def refused(self, recipe: str, **beside: bytes) -> str:
        """What the build says that must fail."""
        with pytest.raises(ImageError) as caught:
            self.build(recipe, **beside)
        return str(caught.value)


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    with pytest.MonkeyPatch.context() as patched, Cache(BUILD_CACHE) as shared:
        # Mirrors are asked once: should one publish meanwhile, heirs are still of what the base was built from.
        patched.setattr("images.build.pipeline.probe", once())
        base = build(inherit.load(inherit.find("debian-12-minimal")), KEYS, shared, Silent())
        with shared.scratch() as scratch, Cache(linked(base, scratch / "own")) as own:
            yield Kitchen(base, own, tmp_path_factory.mktemp("recipes"), linked(base, scratch / "another"))


def once() -> Callable[[tuple[Source, ...]], tuple[Mirror, ...]]:
    """`probe` that asks for the same sources one time."""
    answers: dict[str, tuple[Mirror, ...]] = {}

    def ask(sources: tuple[Source, ...]) -> tuple[Mirror, ...]:
        key = repr(sources)
        if key not in answers:
            answers[key] = probe(sources)
        return answers[key]

    return ask


def linked(base: Built, folder: Path) -> Path:
    """A cache that has what was built: in a folder of its own, since what one cache holds another waits for."""
    (folder / "products").mkdir(parents=True)
    for product in base.products.values():
        (folder / "products" / product.path.name).symlink_to(product.path)
    return folder


def findings(*lines: str) -> str:
    """The message with these findings, each a cause and a remedy."""
    count = len(lines) // 2
    head = f"this image must not be booted, and was not stored; {count} finding{'s' if count > 1 else ''}:"
    return "\n".join([head, *(line if index % 2 == 0 else f"  {line}" for index, line in enumerate(lines))])


def test_the_shipped_recipe_passes_and_says_what_was_looked_at(kitchen: Kitchen) -> None:
    looked = {
        gate["gate"]: gate["looked_at"]
        for gate in json.loads((kitchen.base.products["gates"] / "gates.json").read_bytes())
    }
    assert list(looked) == [
        "architecture",
        "identity",
        "kernel",
        "nouveau",
        "nvidia",
        "owners",
        "pairs",
        "required",
        "secrets",
        "signatures",
        "skew",
        "sources",
        "tools",
    ]
    assert looked["nvidia"] == "no NVIDIA driver"
    assert looked["skew"] == "kubelet none, cluster not named"
    (signed,) = re.findall(r"^(\d+) of \1 modules signed; not asked for$", looked["signatures"])
    assert int(signed) > 10
    assert re.fullmatch(r"\d{3} packages, 3 releases", looked["sources"])


def test_kernel(kitchen: Kitchen) -> None:
    recipe = "files: {/usr/lib/modules/{kernel}/updates/dkms/old.ko: {source: old.ko}}\n"
    old = module(name="old", vermagic="5.10.0-9-amd64 SMP mod_unload modversions ")
    assert kitchen.refused(recipe, **{"old.ko": old}) == findings(
        f"kernel: /usr/lib/modules/{kitchen.kernel}/updates/dkms/old.ko was made for kernel 5.10.0-9-amd64, "
        f"and the image's kernel is {kitchen.kernel}",
        "compile or install it for the image's own kernel (kernel.package), or take it out with 'remove'",
    )


def test_architecture(kitchen: Kitchen) -> None:
    foreign = bytearray(program(interpreter="/lib/ld-linux-aarch64.so.1"))
    foreign[18] = 183  # EM_AARCH64
    recipe = "files: {/usr/local/bin/tool: {source: tool, mode: '0755'}}\n"
    assert kitchen.refused(recipe, tool=bytes(foreign)) == findings(
        "architecture: the image is for amd64, and 1 file is for arm64: /usr/local/bin/tool",
        "take them built for amd64, or leave them out",
    )


def nvidia(kernel: str, version: str = DRIVER) -> bytes:
    return module(name="nvidia", version=version, vermagic=f"{kernel} SMP preempt mod_unload modversions ")


NVIDIA = f"""\
files:
  /usr/lib/modules/{{kernel}}/updates/dkms/nvidia.ko: {{source: nvidia.ko}}
  /usr/lib/firmware/nvidia/{DRIVER}/gsp_ga10x.bin: {{content: firmware}}
"""


def test_nvidia(kitchen: Kitchen) -> None:
    recipe = (
        NVIDIA
        + """\
  /usr/lib/firmware/nvidia/575.57.08/gsp_ga10x.bin: {content: firmware}
  /usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08: {content: library}
  /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.575.57.08: {content: library}
  /usr/lib/modprobe.d/nouveau.conf: {content: "blacklist nouveau\\n"}
"""
    )
    module_ = f"the kernel module's version 580.95.05 (/usr/lib/modules/{kitchen.kernel}/updates/dkms/nvidia.ko)"
    remedy = "take all parts of the driver from one release: pin their versions alike under 'packages'"
    assert kitchen.refused(recipe, **{"nvidia.ko": nvidia(kitchen.kernel)}) == findings(
        f"nvidia: GSP firmware 575.57.08 (/usr/lib/firmware/nvidia/575.57.08) is not of {module_}",
        remedy,
        f"nvidia: library 575.57.08 (/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08 and 1 more) is not of {module_}",
        remedy,
    )


def test_nouveau(kitchen: Kitchen) -> None:
    recipe = NVIDIA + f"  /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{DRIVER}: {{content: library}}\n"
    assert kitchen.refused(recipe, **{"nvidia.ko": nvidia(kitchen.kernel)}) == findings(
        "nouveau: the image has NVIDIA's kernel modules, and nothing keeps nouveau from taking the GPUs first",
        'add to the recipe: files: {/etc/modprobe.d/nouveau.conf: {content: "blacklist nouveau\\n"}}',
    )


def test_required(kitchen: Kitchen) -> None:
    recipe = "requires: {root: [mlx5_ib], firmware: [mellanox/*.mfa2], packages: [rdma-core]}\n"
    assert kitchen.refused(recipe) == findings(
        "required: the root lacks the kernel module mlx5_ib, which the recipe requires",
        "add the package that brings it (on Ubuntu often linux-modules-extra-...), and the name to modules.root",
        "required: the root has no firmware /usr/lib/firmware/mellanox/*.mfa2, which the recipe requires",
        "add the package that brings it, or correct requires.firmware",
        "required: the package rdma-core, which the recipe requires, is not installed",
        "add rdma-core to 'packages'",
    )


def test_required_by_what_is_required(kitchen: Kitchen) -> None:
    recipe = "remove: ['/usr/lib/modules/*/kernel/fs/fat/fat.ko']\n"
    assert kitchen.refused(recipe) == findings(
        "required: the root lacks the kernel module fat, which vfat depends on",
        "add fat to modules.root, and see that nothing under 'remove' takes it out",
    )


def test_a_module_of_the_initrd_that_the_kernel_has_not(kitchen: Kitchen) -> None:
    with pytest.raises(RecipeError) as caught:
        kitchen.build("modules: {initrd: [igbvf]}\n")
    assert str(caught.value) == f"kernel {kitchen.kernel} has no module igbvf; did you mean ixgbevf?"


def test_signatures(kitchen: Kitchen) -> None:
    recipe = "secure_boot: true\nfiles: {/usr/lib/modules/{kernel}/updates/dkms/mine.ko: {source: mine.ko}}\n"
    mine = module(name="mine", vermagic=f"{kitchen.kernel} SMP ")
    assert kitchen.refused(recipe, **{"mine.ko": mine}) == findings(
        "signatures: 1 kernel module is not signed, and the recipe asks for Secure Boot: "
        f"/usr/lib/modules/{kitchen.kernel}/updates/dkms/mine.ko",
        "take signed modules of the distribution, sign them with a key that the machines' firmware knows, "
        "or take secure_boot out of the recipe",
    )


def says(text: str) -> str:
    """A program's entry under `files` that says one line."""
    return f'{{mode: "0755", content: "#!/bin/busybox sh\\necho {text}\\n"}}'


def test_skew(kitchen: Kitchen) -> None:
    recipe = f'kubernetes: "1.34"\nfiles: {{/usr/bin/kubelet: {says("Kubernetes v1.36.2")}}}\n'
    assert kitchen.refused(recipe) == findings(
        "skew: the kubelet is 1.36.2, which is newer than a cluster of Kubernetes 1.34 (1.31 to 1.34 may join it)",
        "take the kubelet from the cluster's own minor version, or correct 'kubernetes' in the recipe",
    )


def test_pairs(kitchen: Kitchen) -> None:
    containerd = says("containerd github.com/containerd/containerd 1.7.28 abcdef")
    recipe = f"files:\n  /usr/bin/kubelet: {says('Kubernetes v1.38.0')}\n  /usr/bin/containerd: {containerd}\n"
    assert kitchen.refused(recipe) == findings(
        "pairs: kubelet 1.38.0 does not work with containerd 1.7.28: the kubelet asks containerd for its cgroup driver "
        "(RuntimeConfig), which came with 2.0, and does not start (https://github.com/kubernetes/enhancements/pull/6087)",
        "take containerd 2.0 or later, or a kubelet before 1.38",
    )


def test_sources(kitchen: Kitchen) -> None:
    status = (kitchen.base.products["kernel"] / "root/var/lib/dpkg/status").read_bytes()
    theirs = b"Package: theirs\nStatus: install ok installed\nArchitecture: all\nVersion: 6.6\n\n"
    recipe = "files: {/var/lib/dpkg/status: {source: status}}\n"
    assert kitchen.refused(recipe, status=status + theirs) == findings(
        "sources: the package theirs 6.6 (all) is in none of the recipe's signed sources",
        "add a signed repository that has it to 'sources', or leave the package out",
    )


def test_owners(kitchen: Kitchen) -> None:
    recipe = """\
files:
  /opt/cni/bin/bridge: {source: bridge, mode: '0755'}
  /usr/lib/cni/bridge: {source: bridge, mode: '0755'}
  /usr/lib/cni/portmap: {link: /opt/cni/bin/bridge}
  /var/lib/dpkg/info/dpkg:amd64.list: {content: "/.\\n/usr/bin\\n/bin/udevadm\\n"}
"""
    assert kitchen.refused(recipe, bridge=program()) == findings(
        "owners: /usr/bin/udevadm is of several packages: dpkg, udev",
        "leave all but one of them out, or report it to whose packages they are: one has overwritten the other's",
        "owners: CNI plugins are in /opt/cni/bin and /usr/lib/cni: bridge",
        "leave one of the packages that bring them out: the Kubernetes project's kubelet depends on kubernetes-cni, "
        "which has them in /opt/cni/bin",
    )


def test_identity(kitchen: Kitchen) -> None:
    recipe = """\
files:
  /etc/nvme/config.json: {content: '[{"hostnqn": "nqn.2014-08.org.nvmexpress:uuid:6d6e0c62-2f0c-4d5e"}]'}
  /var/lib/apt/lists/mirror_Packages: {content: "Package: a"}
"""
    assert kitchen.refused(recipe) == findings(
        "identity: /var/lib/apt/lists/mirror_Packages is apt's state, of the day of the build",
        "take it out of the recipe",
        "identity: /etc/nvme/config.json has an NVMe host's own name in it (nqn.2014-08.org.nvmexpress:uuid:...)",
        "leave hostnqn and hostid out: nvme makes them from the machine's own UUID",
    )


@pytest.mark.parametrize(
    "path",
    [
        "/etc/ssh/ssh_host_ed25519_key",
        "/var/lib/dbus/machine-id",
        "/etc/nvme/hostnqn",
        "/etc/nvme/hostid",
        "/var/lib/systemd/random-seed",
        "/var/lib/dhcp/dhclient.leases",
    ],
)
def test_identity_by_path_is_refused_at_once(kitchen: Kitchen, path: str) -> None:
    with pytest.raises(RecipeError) as caught:
        kitchen.build(f"files: {{{path}: {{content: x}}}}\n")
    assert str(caught.value) == (
        f"{path} names one machine, and an image is for many; take it out of the recipe's files"
    )


def test_secrets(kitchen: Kitchen) -> None:
    shadow = "root:*:20000::::::\nops:$6$saltsalt$" + "a" * 86 + ":20000::::::\nguest::20000::::::\n"
    recipe = """\
files:
  /etc/ssl/private/site.pem: {source: site.pem}
  /etc/htpasswd: {content: "admin:$2y$05$abcdefghijklmnopqrstuuJ3h1yZ0123456789012345678901234\\n"}
  /etc/shadow: {source: shadow, mode: '0640'}
  /root/.netrc: {content: "machine mirror.example.org login builder password Kx7vR2\\n"}
"""
    lock = "lock it with '*' in place of the password; log in with keys or certificates"
    said = kitchen.refused(recipe, shadow=shadow.encode(), **{"site.pem": KEY.to_pem()})
    assert said == findings(
        "secrets: /etc/ssl/private/site.pem holds a private key (PEM)",
        "take it out of the recipe; machines make or fetch their keys when they run (docs/join.md)",
        "secrets: /etc/htpasswd holds a password hash (crypt(5))",
        "take it out of the recipe; a hash that everybody can read is a password that anybody can guess",
        "secrets: /root/.netrc holds a login, a token or a password (netrc)",
        "take it out of the recipe; what machines must know they are told when they run: docs/gates.md",
        "secrets: user ops in /etc/shadow has a password hash",
        lock,
        "secrets: user guest in /etc/shadow needs no password",
        lock,
    )


def test_ten_planted_secrets_are_ten_findings(kitchen: Kitchen) -> None:
    """Of those that the review found to pass; each kind by itself: `tests/unit/images/test_gates_logins.py`."""
    kinds = "munge ceph docker account-in-a-Secret bootstrap aws netrc bmc-environment github keytab"
    planted = {kind: PLANTED[kind] for kind in kinds.split()}
    recipe = "files:\n" + "".join(f"  {path}: {{source: {kind}}}\n" for kind, (path, _, _) in planted.items())
    said = kitchen.refused(recipe, **{kind: data for kind, (_, data, _) in planted.items()})
    remedy = "take it out of the recipe; what machines must know they are told when they run: docs/gates.md"
    holds = "holds a login, a token or a password"
    causes = (f"secrets: {path} {holds} ({', '.join(rules)})" for path, _, rules in planted.values())
    wanted = findings(*(line for cause in causes for line in (cause, remedy)))
    assert sorted(said.splitlines()) == sorted(wanted.splitlines())


def test_budget_and_memory(kitchen: Kitchen) -> None:
    with pytest.raises(BudgetError) as caught:
        kitchen.build("budget_mib: 10\nmachine_memory_mib: 512\n")
    said = str(caught.value)
    image = -(-kitchen.base.manifest.artifacts.root.size // 2**20) + 16
    taken = {"image": image, "system": 263, "overlay": max(64, (496 - image - 263) // 2)}
    size = sum(getattr(kitchen.base.manifest.artifacts, name).size for name in ("kernel", "initrd", "root"))
    parts = re.findall(r"^ +(\d+\.\d) MiB  (\S+)$", said, re.MULTILINE)
    largest = "\n".join(f"  {float(megabytes):9.1f} MiB  {name}" for megabytes, name in parts[:10])
    assert said == findings(
        f"budget: mine is {size / 2**20:.1f} MiB (kernel, initrd and root as a machine fetches them), "
        "its recipe allows budget_mib: 10",
        f"raise it, or leave something out. The largest parts, uncompressed:\n{largest}",
        f"memory: mine leaves {496 - sum(taken.values())} of 496 MiB for work, and a quarter is 124: "
        f"{', '.join(f'{name} {size}' for name, size in taken.items())} (machine_memory_mib: 512)",
        f"boot it on larger machines, or leave something out. The largest parts, uncompressed:\n{largest}",
    )
    assert len(parts) == 20
    assert parts[:10] == parts[10:] == sorted(parts[:10], key=lambda part: -float(part[0]))
    assert {"systemd", "libc6"} <= {name for _, name in parts}


def test_all_findings_at_once_on_the_command_line(kitchen: Kitchen, tmp_path: Path) -> None:
    """The real command: what people see, what programs get, and that nothing is stored."""
    (tmp_path / "mine.yaml").write_text(
        "base: debian-12-minimal\nkubernetes: '1.34'\nrequires: {packages: [rdma-core]}\n", encoding="utf-8"
    )
    argv = [sys.executable, "-m", "netboot.cli.main"]
    subprocess.run([*argv, "key", "create", "--keys", f"{tmp_path}/keys"], cwd=ROOT, check=True, capture_output=True)
    done = run_image_build(tmp_path, tmp_path / "mine.yaml", "--cache", str(kitchen.another))
    assert done.returncode == 1
    skew = "the recipe is for a cluster of Kubernetes 1.34, and the image has no kubelet"
    assert json.loads(done.stdout) == {
        "findings": [
            {
                "gate": "required",
                "cause": "the package rdma-core, which the recipe requires, is not installed",
                "remedy": "add rdma-core to 'packages'",
            },
            {
                "gate": "skew",
                "cause": skew,
                "remedy": "add the package kubelet, or take 'kubernetes' out of the recipe",
            },
        ]
    }
    assert done.stderr.endswith(
        "Error: this image must not be booted, and was not stored; 2 findings:\n"
        "required: the package rdma-core, which the recipe requires, is not installed\n"
        "  add rdma-core to 'packages'\n"
        f"skew: {skew}\n"
        "  add the package kubelet, or take 'kubernetes' out of the recipe\n"
    )
    assert not list((tmp_path / "store").glob("images/*"))
