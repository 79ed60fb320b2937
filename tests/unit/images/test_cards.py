"""Network cards of classes, and images without their drivers: warned of, by the kernel's own tables."""

from pathlib import Path

import pytest

from images.build.cards import undriven
from images.build.step import Product

KERNEL = "6.1.0-9-amd64"
MLX5, ICE = "kernel/mlx5_core.ko", "kernel/ice.ko"
ALIASES = """\
alias pci:v000015B3d00001021sv*sd*bc*sc*i* mlx5_core
alias pci:v00008086d00001592sv*sd*bc*sc*i* ice
alias pci:v*d*sv*sd*bc01sc08i02* nvme
"""
CONNECTX, E810, UNHEARD_OF = ("15b3:1021",), ("8086:159b", "8086:1592"), ("1234:abcd",)
REMEDY = "take the feature `server`, or name it in `modules` of the recipe (docs/recipes.md)"
WITHOUT_INITRD = f"the initrd has no driver of its network cards (mlx5_core): its machines get no address; {REMEDY}"


def tree(folder: Path, *modules: str) -> Product:
    """What a step made whose root has these modules."""
    found = folder / "root/lib/modules" / KERNEL
    found.mkdir(parents=True)
    (found / "modules.dep").write_text("".join(f"{path}:\n" for path in modules))
    (found / "modules.alias").write_text(ALIASES)
    (found / "modules.builtin").write_text("kernel/loop.ko\nkernel/overlay.ko\nkernel/af_packet.ko\n")
    (folder / "version").write_text(f"{KERNEL}\n")
    return Product(folder.name, folder)


@pytest.mark.parametrize(
    ("kept", "early", "cards", "warnings"),
    [
        ((MLX5, ICE), ("mlx5_core",), {"ConnectX-7": CONNECTX, "E810": E810}, ()),
        ((), ("mlx5_core", "ice"), {"ConnectX-7": CONNECTX, "E810": E810}, ()),
        ((MLX5,), ("mlx5_core",), {}, ()),
        (
            (MLX5,),
            ("mlx5_core",),
            {"ConnectX-7": CONNECTX, "E810": E810},
            (f"the image leaves out ice, the driver of its E810; {REMEDY}",),
        ),
        ((MLX5, ICE), (), {"ConnectX-7": CONNECTX}, (WITHOUT_INITRD,)),
        (
            (),
            (),
            {"ConnectX-7": CONNECTX},
            (f"the image leaves out mlx5_core, the driver of its ConnectX-7; {REMEDY}",),
        ),
        (
            (MLX5,),
            ("mlx5_core",),
            {"1234:abcd": UNHEARD_OF, "ConnectX-7": CONNECTX},
            (f"kernel {KERNEL} has no driver for its 1234:abcd; take the full kernel (`kernel.package`)",),
        ),
    ],
    ids=["all", "initrd-alone", "none-declared", "one-left-out", "not-in-initrd", "nowhere", "not-in-kernel"],
)
def test_a_class_whose_cards_an_image_does_not_drive(
    tmp_path: Path,
    kept: tuple[str, ...],
    early: tuple[str, ...],
    cards: dict[str, tuple[str, ...]],
    warnings: tuple[str, ...],
) -> None:
    products = {"configure": tree(tmp_path / "configure", MLX5, ICE), "kernel": tree(tmp_path / "kernel", *kept)}
    found = undriven(products, early, {"hgx-h100": cards, "vm": {}})
    assert found == tuple(f"class hgx-h100: {warning}" for warning in warnings)


def test_where_no_class_declares_cards_nothing_is_read() -> None:
    assert undriven({}, (), {"vm": {}}) == ()
