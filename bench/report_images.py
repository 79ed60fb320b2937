"""What the part `images` prints, and its targets."""

from rich.console import Console
from rich.table import Table

from bench.images import BASE, Images
from bench.stats import Verdict

MIB = 1 << 20
OVERLAY_SECONDS = 10.0


def images_verdicts(images: Images) -> list[Verdict]:
    """The issue's targets: those of them that were measured."""
    overlay = images.builds["a file of the overlay"]
    cold = images.builds["nothing there"]
    verdicts = [
        Verdict("seconds for a change of the overlay", overlay.seconds, OVERLAY_SECONDS, at_least=False),
        Verdict(f"MiB of {BASE} ÷ its budget", cold.fetched / MIB / images.budget_mib, 1.0, at_least=False),
    ]
    if images.mkosi:
        dev = images.whole["dev"]
        verdicts.append(
            Verdict("build of a root ÷ mkosi, seconds", dev.root_seconds / images.mkosi.seconds, 1.0, at_least=False)
        )
        verdicts += [
            Verdict(f"root, {profile} ÷ mkosi, bytes", build.bytes["root"] / images.mkosi.size, 1.0, at_least=False)
            for profile, build in images.whole.items()
        ]
    return verdicts


def print_images(console: Console, images: Images) -> None:
    """Steps by what had changed; sizes; both roots."""
    names = list(dict.fromkeys(name for build in images.builds.values() for name in build.steps))
    table = _table("step", *images.builds, title=f"{BASE}, profile dev: seconds by what had changed; -: cached")
    for name in names:
        table.add_row(name, *(_seconds(build.steps.get(name)) for build in images.builds.values()))
    table.add_row("in all", *(_seconds(build.seconds) for build in images.builds.values()))
    console.print(table, "")
    cold = images.builds["nothing there"]
    sizes = ", ".join(f"{name} {cold.bytes[name] / MIB:.1f}" for name in ("kernel", "initrd", "root"))
    console.print(f"MiB: {sizes}; {cold.fetched / MIB:.1f} of {images.budget_mib}", "", highlight=False)
    table = _table("root with all modules", "seconds", "MiB", title="the same packages as a squashfs")
    for profile, build in images.whole.items():
        table.add_row(f"netboot, {profile}", _seconds(build.root_seconds), f"{build.bytes['root'] / MIB:.1f}")
    if images.mkosi:
        table.add_row(images.mkosi.version, _seconds(images.mkosi.seconds), f"{images.mkosi.size / MIB:.1f}")
    console.print(table, "")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _table(*columns: str, title: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
