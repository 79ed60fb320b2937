"""What the part `images` prints, and its targets."""

from rich.console import Console
from rich.table import Table

from bench.images import BASE, Images
from bench.stats import Verdict

MIB = 1 << 20
OVERLAY_SECONDS = 10.0


def images_verdicts(found: Images) -> list[Verdict]:
    """The issue's targets: those of them that were measured."""
    overlay = found.builds["a file of the overlay"]
    cold = found.builds["nothing there"]
    verdicts = [
        Verdict("seconds for a change of the overlay", overlay.seconds, OVERLAY_SECONDS, at_least=False),
        Verdict(f"MiB of {BASE} ÷ its budget", cold.fetched / MIB / found.budget_mib, 1.0, at_least=False),
    ]
    if found.mkosi:
        dev = found.whole["dev"]
        verdicts.append(
            Verdict("build of a root ÷ mkosi, seconds", dev.root_seconds / found.mkosi.seconds, 1.0, at_least=False)
        )
        verdicts += [
            Verdict(f"root, {profile} ÷ mkosi, bytes", build.bytes["root"] / found.mkosi.size, 1.0, at_least=False)
            for profile, build in found.whole.items()
        ]
    return verdicts


def print_images(console: Console, found: Images) -> None:
    """Steps by what had changed; sizes; both roots."""
    names = list(dict.fromkeys(name for build in found.builds.values() for name in build.steps))
    table = _table("step", *found.builds, title=f"{BASE}, profile dev: seconds by what had changed; -: cached")
    for name in names:
        table.add_row(name, *(_seconds(build.steps.get(name)) for build in found.builds.values()))
    table.add_row("in all", *(_seconds(build.seconds) for build in found.builds.values()))
    console.print(table, "")
    cold = found.builds["nothing there"]
    sizes = ", ".join(f"{name} {cold.bytes[name] / MIB:.1f}" for name in ("kernel", "initrd", "root"))
    console.print(f"MiB: {sizes}; {cold.fetched / MIB:.1f} of {found.budget_mib}", "", highlight=False)
    table = _table("root with all modules", "seconds", "MiB", title="the same packages as a squashfs")
    for profile, build in found.whole.items():
        table.add_row(f"netboot, {profile}", _seconds(build.root_seconds), f"{build.bytes['root'] / MIB:.1f}")
    if found.mkosi:
        table.add_row(found.mkosi.version, _seconds(found.mkosi.seconds), f"{found.mkosi.size / MIB:.1f}")
    console.print(table, "")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _table(*columns: str, title: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
