"""NVIDIA's driver: which versions are compared, what may differ, and nouveau."""

from pathlib import Path
from typing import Any

import pytest

from images.build.gates.checks import nouveau, nvidia
from images.recipe.recipe import Nvidia
from tests.unit.images.gate_facts import KERNEL, facts, module, modules, recipe_facts, said

V = "535.261.03"
LIB = "/usr/lib/x86_64-linux-gnu"
ONE_RELEASE = "take all parts of the driver from one release: pin their versions alike under 'packages'"


def driver(version: str = V) -> dict[str, Any]:
    """As Debian 12 has it: the modules' files are called nvidia-current, persistenced is of an older release."""
    current = module("nvidia", "updates/dkms", version=version)
    named = {f"nvidia_current{rest}": module(f"nvidia{rest}", version=version) for rest in ("_uvm", "_modeset", "_drm")}
    return {
        "modules": {**modules(), "nvidia_current": current, **named},
        "firmware": (
            "mellanox/fw.mfa2",
            f"nvidia/{V}/gsp_ga10x.bin",
            f"nvidia/{V}/gsp_tu10x.bin",
            "nvidia/ga100/acr/bl.bin",
        ),
        "libraries": (f"{LIB}/nvidia/current/libcuda.so.{V}", f"{LIB}/libnvidia-ml.so.{V}"),
        "packages": (
            ("nvidia-smi", f"{V}-1~deb12u1", "amd64"),
            ("nvidia-persistenced", "535.171.04-1~deb12u1", "amd64"),
            ("nvidia-container-toolkit", "1.17.8-1", "amd64"),
        ),
        "recipe": recipe_facts(nvidia=Nvidia(persistenced="major")),
    }


def test_debians_own_driver_passes_where_the_recipe_says_what_differs(tmp_path: Path) -> None:
    assert said(nvidia.GATE, facts(tmp_path, **driver())) == []
    assert nvidia.GATE.scope(facts(tmp_path, **driver())) == (
        "GSP firmware 535.261.03, kernel module 535.261.03, library 535.261.03, nvidia-smi 535.261.03, "
        "persistenced 535.171.04"
    )


def test_without_that_word_persistenced_must_be_the_modules(tmp_path: Path) -> None:
    assert (
        said(
            nvidia.GATE,
            facts(
                tmp_path,
                **driver(),
            ),
        )
        == []
    )
    assert said(nvidia.GATE, facts(tmp_path, **(driver() | {"recipe": recipe_facts()}))) == [
        (
            "nvidia: persistenced 535.171.04 (package nvidia-persistenced) is not of the "
            "kernel module's version 535.261.03 "
            f"(/usr/lib/modules/{KERNEL}/updates/dkms/nvidia.ko)\n"
            f"  {ONE_RELEASE}, or say 'nvidia: {{persistenced: major}}' where the distribution has no other"
        )
    ]


def test_another_major_version_of_persistenced_is_never_right(tmp_path: Path) -> None:
    packages = (("nvidia-persistenced", "550.54.14-1", "amd64"),)
    assert said(nvidia.GATE, facts(tmp_path, **(driver() | {"packages": packages}))) == [
        (
            "nvidia: persistenced 550.54.14 (package nvidia-persistenced) is not of the "
            "kernel module's version 535.261.03 "
            f"(/usr/lib/modules/{KERNEL}/updates/dkms/nvidia.ko)\n  {ONE_RELEASE}"
        )
    ]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"firmware": (f"nvidia/{V}/gsp_ga10x.bin", "nvidia/535.54.03/gsp_tu10x.bin")},
         "GSP firmware 535.54.03 (/usr/lib/firmware/nvidia/535.54.03)"),
        ({"libraries": (f"{LIB}/libcuda.so.{V}", f"{LIB}/libnvidia-ml.so.535.54.03", f"{LIB}/libnvidia.so.535.54.03")},
         f"library 535.54.03 ({LIB}/libnvidia-ml.so.535.54.03 and 1 more)"),
        ({"packages": (("nvidia-utils-580-server", "580.95.05-0ubuntu0.24.04.2", "amd64"),)},
         "nvidia-smi 580.95.05 (package nvidia-utils-580-server)"),
        ({"packages": (("nvidia-fabricmanager-535", "535.247.01-1", "amd64"),)},
         "fabric manager 535.247.01 (package nvidia-fabricmanager-535)"),
        ({"packages": (("nvidia-imex-535", "535.247.01-0ubuntu0.24.04.1", "arm64"),)},
         "IMEX 535.247.01 (package nvidia-imex-535)"),
        ({"packages": (("nvidia-imex", "535.247.01-1", "amd64"),)}, "IMEX 535.247.01 (package nvidia-imex)"),
        ({"libraries": (f"{LIB}/libcuda.so.{V}", f"{LIB}/libnvidia-nscq.so.550.1.02")},
         f"NSCQ 550.1.02 ({LIB}/libnvidia-nscq.so.550.1.02)"),
    ],
)  # fmt: skip
def test_each_part_that_differs_is_named(tmp_path: Path, change: dict[str, Any], cause: str) -> None:
    assert said(nvidia.GATE, facts(tmp_path, **(driver() | change))) == [
        (
            f"nvidia: {cause} is not of the "
            "kernel module's version 535.261.03 "
            f"(/usr/lib/modules/{KERNEL}/updates/dkms/nvidia.ko)\n  {ONE_RELEASE}"
        )
    ]


def test_modules_of_two_releases(tmp_path: Path) -> None:
    parts = driver()
    parts["modules"]["nvidia_peermem"] = module("nvidia_peermem", version="535.54.03")
    (line,) = said(nvidia.GATE, facts(tmp_path, **parts))
    assert line.startswith(
        f"nvidia: kernel module 535.54.03 (/usr/lib/modules/{KERNEL}/kernel/nvidia_peermem.ko) is not of the kernel"
    )


def test_a_module_without_its_firmware_and_libraries(tmp_path: Path) -> None:
    ko = f"/usr/lib/modules/{KERNEL}/updates/dkms/nvidia.ko"
    assert said(nvidia.GATE, facts(tmp_path, **(driver() | {"firmware": (), "libraries": ()}))) == [
        (
            f"nvidia: there is no /usr/lib/firmware/nvidia/535.261.03/gsp_*.bin for the kernel module {ko}\n"
            "  add the package with the GSP firmware of this version"
        ),
        (
            f"nvidia: the kernel module {ko} is there, and no libcuda.so or libnvidia-ml.so of its version\n"
            "  add the packages with the driver's libraries of this version"
        ),
    ]


def test_libraries_without_a_module(tmp_path: Path) -> None:
    assert said(nvidia.GATE, facts(tmp_path, libraries=(f"{LIB}/libcuda.so.{V}",))) == [
        (
            f"nvidia: parts of NVIDIA's driver are there, and no kernel module of it for kernel {KERNEL}: "
            f"library 535.261.03 ({LIB}/libcuda.so.535.261.03)\n"
            "  add the package with the modules for this kernel and name them under modules.root, "
            "or leave the parts out"
        )
    ]


def test_names_that_only_look_like_the_drivers(tmp_path: Path) -> None:
    others = modules(
        module("nvidiafb"),
        module("nvidia_wmi_ec_backlight"),
        module("nvidia_fs", version="2.20"),
        module("i2c_nvidia_gpu"),
    )
    found = facts(
        tmp_path,
        modules=others,
        libraries=(f"{LIB}/libxyz.so.100.1",),
        firmware=("nvidia/tu102/gsp/gsp-535.113.01.bin",),
        packages=(("nvidia-container-toolkit", "1.17.8", "amd64"), ("libnvidia-container1", "1.17.8", "amd64")),
    )
    assert said(nvidia.GATE, found) == said(nouveau.GATE, found) == []
    assert nvidia.GATE.scope(found) == nouveau.GATE.scope(found) == "no NVIDIA driver"


@pytest.mark.parametrize(
    "lines",
    [
        ("blacklist nouveau",),
        ("options nvidia x=1", "install nouveau /bin/false"),
        ("install nouveau /usr/bin/true",),
        ("blacklist   nouveau ",),
    ],
)
def test_nouveau_is_kept_out_by_modprobes_configuration(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert said(nouveau.GATE, facts(tmp_path, **driver(), modprobe=lines)) == []


@pytest.mark.parametrize("argument", ["modprobe.blacklist=nouveau", "module_blacklist=a,nouveau,b"])
def test_nouveau_is_kept_out_by_the_kernels_arguments(tmp_path: Path, argument: str) -> None:
    parts = driver() | {"recipe": recipe_facts(arguments=("quiet", argument))}
    assert said(nouveau.GATE, facts(tmp_path, **parts)) == []


@pytest.mark.parametrize("line", ["blacklist nouveaux", "options nouveau modeset=0", "alias nouveau off"])
def test_what_does_not_keep_nouveau_out(tmp_path: Path, line: str) -> None:
    found = facts(
        tmp_path, **(driver() | {"recipe": recipe_facts(arguments=("modprobe.blacklist=nouveaux",))}), modprobe=(line,)
    )
    assert len(said(nouveau.GATE, found)) == 1
