"""Modules compiled in a build root: what is installed there, what becomes of it, what is said where nothing does."""

from dataclasses import replace
from pathlib import Path

import pytest

from images.build.context import Context
from images.build.sources import Mirror
from images.build.step import Product
from images.build.steps import bootstrap, configure, drivers
from images.errors import CommandError, RecipeError
from images.recipe.inherit import find, load
from tests.unit.images.elf_samples import module

MIRROR = Mirror("http://m.example/d", ("a",), ("main",), b"key", ".asc", ("1" * 64,), 1000)
INPUTS = drivers.Inputs("bookworm", "amd64", (MIRROR,), "linux-image-amd64", ("vendor-dkms",), ("usr-is-merged",), 1000)
KERNEL = "6.1.0-1-amd64"


def quiet(line: str) -> None:
    pass


class Root:
    """In the place of mmdebstrap and of the compiler: headers, a source, and modules where dkms leaves them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kernels: tuple[str, ...] = (KERNEL,)
        self.source = True
        self.modules: dict[str, bytes] = {"vendor-current-open": module(name="vendor_fast", version="1.2")}
        self.commands: list[list[str]] = []
        self.refuses: CommandError | None = None
        monkeypatch.setattr(bootstrap, "bootstrap", self.bootstrap)
        monkeypatch.setattr(drivers, "run", self.run)

    def bootstrap(self, inputs: bootstrap.Inputs, out: Path, say: object, options: tuple[str, ...]) -> None:
        self.asked, self.options = inputs, options
        for kernel in self.kernels:
            (out / f"root/usr/lib/modules/{kernel}").mkdir(parents=True)
            (out / f"root/usr/lib/modules/{kernel}/build").symlink_to(f"/usr/src/linux-headers-{kernel}")
        (out / "root/etc/dkms").mkdir(parents=True)
        if self.source:
            (out / "root/usr/src/vendor-1.2").mkdir(parents=True)
            (out / "root/usr/src/vendor-1.2/dkms.conf").write_text("")

    def run(self, argv: list[object], **options: object) -> str:
        words = [str(word) for word in argv]
        self.commands.append(words)
        if words[0] != "unshare":
            return ""
        if self.refuses:
            raise self.refuses
        root = Path(words[words.index("chroot") + 1])
        folder = root / f"var/lib/dkms/vendor/1.2/{KERNEL}/x86_64/module"
        folder.mkdir(parents=True)
        for name, data in self.modules.items():
            (folder / f"{name}.ko").write_bytes(data)
        return ""


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Root:
    return Root(monkeypatch)


@pytest.mark.parametrize(
    ("kernel", "headers"),
    [
        ("linux-image-amd64", "linux-headers-amd64"),
        ("linux-image-cloud-amd64", "linux-headers-cloud-amd64"),
        ("linux-image-virtual=6.8.0-31.31", "linux-headers-virtual=6.8.0-31.31"),
    ],
)
def test_headers_are_the_kernels(kernel: str, headers: str) -> None:
    assert drivers.headers_of(kernel) == headers


def test_a_kernel_of_which_nobody_knows_the_headers() -> None:
    with pytest.raises(RecipeError) as caught:
        drivers.headers_of("my-kernel")
    assert str(caught.value) == (
        "drivers: nobody can tell which headers belong to the kernel my-kernel: it is not named linux-image-…; "
        "name a kernel of the distribution in kernel.package, or take packages with compiled modules"
    )


def test_modules_get_their_own_names_and_the_build_root_goes(root: Root, tmp_path: Path) -> None:
    drivers.drivers(INPUTS, tmp_path, quiet)
    assert root.asked.packages == ("dkms", "linux-headers-amd64", "make", "usr-is-merged", "vendor-dkms")
    assert root.options == drivers.OPTIONS
    assert [path.name for path in (tmp_path / "modules").iterdir()] == ["vendor-fast.ko"]
    assert (tmp_path / "version").read_text() == f"{KERNEL}\n"
    assert (tmp_path / "root/etc/dkms/framework.conf.d/netboot.conf").read_text() == drivers.FRAMEWORK
    compiling, removing = root.commands
    assert compiling[:8] == [
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--uts",
        "--fork",
        "--kill-child",
        f"--mount-proc={tmp_path}/root/proc",
    ]
    assert compiling[8:12] == ["--", "chroot", f"{tmp_path}/root", "bash"]
    assert compiling[-2] == KERNEL
    assert removing == ["rm", "-rf", "--one-file-system", f"{tmp_path}/root"]


def test_patches_lie_where_the_sources_are_patched_before_they_are_compiled(root: Root, tmp_path: Path) -> None:
    patched = replace(INPUTS, patches=(("b.patch", b"first"), ("a.patch", b"second")))
    drivers.drivers(patched, tmp_path, quiet)
    there = {path.name: path.read_bytes() for path in (tmp_path / "root/netboot-patches").iterdir()}
    assert there == {"00-b.patch": b"first", "01-a.patch": b"second"}
    assert drivers.STEP.key(patched) != drivers.STEP.key(INPUTS)


def refused(root: Root, tmp_path: Path) -> str:
    with pytest.raises(RecipeError) as caught:
        drivers.drivers(INPUTS, tmp_path, quiet)
    return str(caught.value)


def test_a_source_that_does_not_compile_ends_with_the_compilers_words(root: Root, tmp_path: Path) -> None:
    root.refuses = CommandError("unshare …", 1, "nv.c:7:1: error: implicit declaration of function 'old_name'")
    assert refused(root, tmp_path) == (
        f"drivers: vendor-dkms: does not compile for {KERNEL}:\n"
        "nv.c:7:1: error: implicit declaration of function 'old_name'"
    )


def test_packages_without_sources(root: Root, tmp_path: Path) -> None:
    root.source = False
    assert refused(root, tmp_path) == "drivers: vendor-dkms: no sources for dkms in it (/usr/src/*/dkms.conf)"


def test_sources_of_which_nothing_became_a_module(root: Root, tmp_path: Path) -> None:
    root.modules = {}
    assert refused(root, tmp_path) == f"drivers: vendor-dkms: no module for kernel {KERNEL} came of it"


def test_headers_of_two_kernels(root: Root, tmp_path: Path) -> None:
    root.kernels = ("6.1.0-2-amd64", KERNEL)
    assert refused(root, tmp_path) == (
        "drivers: there are headers of 2 kernels (6.1.0-1-amd64, 6.1.0-2-amd64), not of one"
    )


def test_what_is_compiled_depends_on_mirrors_kernel_and_packages_and_not_on_where_a_mirror_is() -> None:
    key = drivers.STEP.key(INPUTS)
    assert drivers.STEP.key(replace(INPUTS, mirrors=(replace(MIRROR, url="http://other.example"),))) == key
    changed = [
        replace(INPUTS, mirrors=(replace(MIRROR, releases=("2" * 64,)),)),
        replace(INPUTS, kernel="linux-image-cloud-amd64"),
        replace(INPUTS, packages=("other-dkms",)),
    ]
    assert len({key, *(drivers.STEP.key(one) for one in changed)}) == 4


def test_the_recipe_of_a_gpu_server_compiles_for_its_own_kernel() -> None:
    inputs = drivers.STEP.inputs(Context(load(find("debian-12-gpu")), {}, (MIRROR,)), {})
    assert (inputs.kernel, inputs.packages) == ("linux-image-amd64", ("nvidia-open-kernel-dkms",))
    assert inputs.merged_usr == ("usr-is-merged",)
    assert [name for name, _ in inputs.patches] == ["nvidia-535-pci-resize.patch"]


def test_modules_for_another_kernel_than_the_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "drivers/modules").mkdir(parents=True)
    (tmp_path / "drivers/version").write_text(f"{KERNEL}\n")
    base = tmp_path / "base/root"
    (base / "lib/modules/6.1.0-2-amd64").mkdir(parents=True)
    inputs = configure.Inputs(
        Product("b", tmp_path / "base"), (), (), (), {}, (), 1000, (), Product("d", tmp_path / "drivers")
    )
    (tmp_path / "out").mkdir()
    with pytest.raises(RecipeError) as caught:
        configure.configure(inputs, tmp_path / "out", quiet)
    assert str(caught.value) == (f"drivers: compiled for kernel {KERNEL}, and the image has 6.1.0-2-amd64; build again")


def test_packages_of_the_kernel_are_installed_after_it() -> None:
    inputs = bootstrap.Inputs("noble", "amd64", (MIRROR,), ("linux-modules-extra-{kernel}", "systemd"), 1000)
    words = bootstrap.argv(inputs, Path("/r"), Path("/s"))
    assert "--include=systemd" in words
    assert [word for word in words if word.startswith("--customize-hook")] == [
        (
            '--customize-hook=kernel=$(ls "$1/usr/lib/modules") && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get '
            "-o Dir::Bin::dpkg=env -o DPkg::Options::=--unset=TMPDIR -o DPkg::Options::=dpkg "
            '-o DPkg::Chroot-Directory="$1" --yes install "linux-modules-extra-$kernel"'
        )
    ]
