"""Images of another architecture: what a build says where their programs cannot run, as literals."""

from pathlib import Path

import pytest

from images.build import architecture, pipeline
from images.build.cache import Cache
from images.errors import CommandError, ImageError, RecipeError
from images.recipe import inherit
from images.values.types import Architecture
from netboot.cli.building import Building

BINFMT = "/proc/sys/fs/binfmt_misc"
REGISTER = "cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register"
REGISTERED = "enabled\ninterpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P\nflags: POF\noffset 0\nmagic 7f454c46\n"
WHOLE = {
    "usr/bin/arch-test": "",
    "usr/bin/qemu-aarch64-static": "",
    "proc/filesystems": "nodev\tsysfs\nnodev\tbinfmt_misc\n\text4\n",
    "proc/sys/fs/binfmt_misc/register": "",
    "proc/sys/fs/binfmt_misc/status": "enabled\n",
    "proc/sys/fs/binfmt_misc/qemu-aarch64": REGISTERED,
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """An amd64 machine's files, where everything is as it should be."""
    for name, content in WHOLE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def of(machine: Path) -> list[str]:
    return list(architecture.faults("arm64", machine))


def test_where_all_is_there_nothing_is_said(machine: Path) -> None:
    assert of(machine) == []


def test_a_fresh_machine_is_told_everything_at_once_in_the_order_in_which_it_helps(tmp_path: Path) -> None:
    assert of(tmp_path) == [
        "arch-test is not installed: apt-get install arch-test",
        "qemu-user-static is not installed: apt-get install qemu-user-static",
        "the kernel has no binfmt_misc: modprobe binfmt_misc (in a container: on its host)",
        "binfmt_misc is not mounted: mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc",
        "qemu-aarch64 is not registered: cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register",
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("status", "disabled\n", "binfmt_misc is switched off: echo 1 >/proc/sys/fs/binfmt_misc/status"),
        (
            "qemu-aarch64",
            REGISTERED.replace("enabled", "disabled"),
            "qemu-aarch64 is switched off: echo 1 >/proc/sys/fs/binfmt_misc/qemu-aarch64",
        ),
        (
            "qemu-aarch64",
            REGISTERED.replace("POF", "PO"),
            f"qemu-aarch64 is registered without the flag F: echo -1 >{BINFMT}/qemu-aarch64; {REGISTER}",
        ),
    ],
)
def test_one_thing_that_is_not_as_it_should_be(machine: Path, name: str, content: str, said: str) -> None:
    (machine / "proc/sys/fs/binfmt_misc" / name).write_text(content)
    assert of(machine) == [said]


def test_on_an_arm64_machine_it_is_the_other_way_round(machine: Path) -> None:
    assert list(architecture.faults("amd64", machine)) == [
        "qemu-user-static is not installed: apt-get install qemu-user-static",
        "qemu-x86_64 is not registered: cat /usr/lib/binfmt.d/qemu-x86_64.conf >/proc/sys/fs/binfmt_misc/register",
    ]


@pytest.mark.parametrize(("uname", "debian"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_this_machines_architecture(uname: str, debian: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: uname)
    assert architecture.native() == debian


def test_its_own_architecture_is_not_even_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr(architecture, "run", None)
    architecture.check("arm64", "linux-image-arm64", tmp_path)


@pytest.mark.parametrize(
    ("found", "last"),
    [
        (["binfmt_misc is not mounted: …", "qemu-aarch64 is not registered: …"], None),
        ([], "all seems to be there, and yet: arm64: not supported on this machine/kernel"),
    ],
)
def test_the_whole_message(found: list[str], last: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[object], **options: object) -> str:
        assert argv == ["arch-test", "-c", tmp_path, "arm64"]
        raise CommandError("arch-test", 1, "arm64: not supported on this machine/kernel")

    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(architecture, "run", run)
    monkeypatch.setattr(architecture, "faults", lambda wanted: iter(found))
    with pytest.raises(ImageError) as caught:
        architecture.check("arm64", "linux-image-arm64", tmp_path)
    assert str(caught.value) == (
        "this machine is amd64 and cannot run the programs of arm64, which a build of that architecture has to. "
        "./setup.sh puts it right; or by hand, as root, in this order (or build on a machine that is arm64):\n"
        + "\n".join(f"  {line}" for line in ([last] if last else found))
    )


@pytest.mark.parametrize(
    ("wanted", "kernel", "like"),
    [
        ("arm64", "linux-image-cloud-amd64", "linux-image-cloud-arm64"),
        ("amd64", "linux-image-arm64=6.1.1", "linux-image-amd64"),
    ],
)
def test_a_kernel_of_the_bases_architecture(wanted: Architecture, kernel: str, like: str, tmp_path: Path) -> None:
    other = "amd64" if wanted == "arm64" else "arm64"
    with pytest.raises(RecipeError) as caught:
        architecture.check(wanted, kernel, tmp_path)
    assert str(caught.value) == (
        f"kernel.package: {kernel} is a kernel for {other}, and the image is for {wanted}; "
        f"name one for {wanted} in the recipe, like {like}"
    )


def test_a_build_asks_for_nothing_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(wanted: str, kernel: str, folder: Path) -> None:
        assert (wanted, kernel, list(folder.iterdir())) == ("arm64", "linux-image-arm64", [])
        raise ImageError("not here")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(architecture, "check", check)
    monkeypatch.setattr(pipeline, "probe", None)
    recipe = inherit.load(inherit.find("debian-12-arm64"))
    with Cache(tmp_path) as cache, pytest.raises(ImageError, match=r"^not here$"):
        pipeline.build(recipe, {}, cache, Building())
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "products").iterdir()) == []
