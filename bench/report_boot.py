"""What the part `boot` prints, and its targets."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.boot import Boots
from bench.boot_times import Seconds
from bench.stats import Verdict, middle, paired


def boot_verdicts(found: Boots) -> list[Verdict]:
    """The issue's targets."""
    floor = found.floor
    joining = [one["Joining"] - one["Switched"] for one in found.ours]
    ratios = (
        ("kernel → Switched, verified ÷ floor's", _at(found.ours, "Switched"), _at(floor, "Switched"), 1.2),
        ("Switched → Joining ÷ floor's kernel → multi-user", joining, _at(floor, "Booted"), 0.5),
        ("kernel → Ready ÷ floor's", _at(found.ours, "Ready"), _at(floor, "Ready"), 1.9),
    )
    return [Verdict(what, paired(ours, theirs), most, at_least=False) for what, ours, theirs, most in ratios]


def print_boot(console: Console, found: Boots) -> None:
    """Each phase: when, how long after the one before, and the same of the floor; medians."""
    how = "KVM" if found.accelerator == "kvm" else "software emulation"
    count = len(found.ours)
    title = f"a boot of {found.mib:.0f} MiB in {how}, {count} round{'s' * (count > 1)}: seconds from the kernel's start"
    columns = ("phase", "at", "took", "floor at", "took", "÷ floor")
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    ours, floor = medians(found.ours), medians(found.floor)
    for phase, at in sorted(ours.items(), key=lambda each: each[1]):
        cells = [f"{at:.2f}", _took(ours, at)]
        if phase in floor:
            cells += [f"{floor[phase]:.2f}", _took(floor, floor[phase]), f"{at / floor[phase]:.2f}"]
        table.add_row(phase, *cells)
    console.print(title, style="italic", highlight=False)
    console.print(table, "")


def medians(rounds: Iterable[Seconds]) -> Seconds:
    """Of each phase that every round has."""
    each = list(rounds)
    common = set(each[0]).intersection(*each[1:])
    return {phase: middle(one[phase] for one in each) for phase in common}


def _at(rounds: Iterable[Seconds], phase: str) -> list[float]:
    return [one[phase] for one in rounds]


def _took(all_at: Seconds, at: float) -> str:
    """Since the phase before, or the kernel's start; of what was before that nothing is said."""
    return "" if at < 0 else f"{at - max((one for one in all_at.values() if 0 <= one < at), default=0.0):.2f}"
