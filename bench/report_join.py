"""What the part `join` prints, and its targets."""

from collections import Counter
from statistics import quantiles

from rich.console import Console
from rich.table import Table

from bench.join import NODES, TARGET, FleetRound, Join
from bench.observed import CERTIFICATE
from bench.stats import Verdict, middle

ALL = "all, start to kubeconfig"


def p99(values: list[float]) -> float:
    """The 99th percentile (of few values: the largest)."""
    return quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


def middle_fleet(measured: Join) -> FleetRound:
    """The round with the median duration."""
    ordered = sorted(measured.fleets, key=lambda fleet: fleet.joined.seconds)
    return ordered[len(ordered) // 2]


def join_verdicts(measured: Join) -> list[Verdict]:
    """The issue's target, where as many nodes as it names were measured."""
    seconds = middle(fleet.joined.seconds for fleet in measured.fleets)
    name = f"{measured.nodes} nodes < {TARGET:.0f} s: seconds until all have a certificate"
    return [Verdict(name, seconds, TARGET, at_least=False)] if measured.nodes >= NODES else []


def print_join(console: Console, measured: Join) -> None:
    """Exchanges, tokens, the fleet, and what it cost whom."""
    _print_rates(console, measured)
    fleet_round = middle_fleet(measured)
    seconds = ", ".join(f"{fleet.joined.seconds:.1f}" for fleet in measured.fleets)
    console.print(
        f"{measured.nodes} machines started at once, all with a certificate after {seconds} s", highlight=False
    )
    console.print(f"on {measured.cores} cores, which the simulated machines share", highlight=False)
    table = _table("seconds", "median", "p99", "longest")
    for name, values in _phases(fleet_round).items():
        table.add_row(name, f"{middle(values):.2f}", f"{p99(values):.2f}", f"{max(values):.2f}")
    console.print(table)
    _print_cost(console, fleet_round)
    console.print(f"kube-controller-manager {' '.join(measured.flags)}", highlight=False)
    spans = [(machine.end - machine.seconds[CERTIFICATE], machine.end) for machine in fleet_round.joined.machines]
    took = max(end for _, end in spans) - min(asked for asked, _ in spans)
    words = f"{len(spans)} certificates in {took:.1f} s from the first request on: {len(spans) / took:.1f}/s"
    console.print(words, "", highlight=False)


def _print_rates(console: Console, measured: Join) -> None:
    table = _table("", "/s", "hello p99 ms", "attest p99 ms", "CPU µs each", "/s a core would bear")
    pairs = measured.pairs
    each = middle(figures.cpu_us for figures in pairs)
    hello, attest = (
        middle(p99(figures.paired.phases[name]) * 1000 for figures in pairs) for name in ("hello", "attest")
    )
    rate = middle(figures.paired.per_second for figures in pairs)
    table.add_row(
        "hello + attest, one core",
        f"{rate:.1f}",
        f"{hello:.0f}",
        f"{attest:.0f}",
        f"{each:,.0f}",
        f"{1e6 / each:.0f}",
    )
    cost = middle(figures.cpu / figures.tokens * 1e6 for figures in measured.issued)
    rate = middle(figures.per_second for figures in measured.issued)
    table.add_row("tokens, the issuer alone", f"{rate:.1f}", "", "", f"{cost:,.0f}", f"{1e6 / cost:.0f}")
    console.print("join over TLS, a real apiserver behind it; TPMs in software, P-256, made before the clock starts")
    console.print(table, "")


def _phases(fleet: FleetRound) -> dict[str, list[float]]:
    machines = fleet.joined.machines
    phases = {name: [m.seconds[name] for m in machines] for name in ("hello", "attest", CERTIFICATE)}
    return {**phases, ALL: [m.end - m.start for m in machines]}


def _print_cost(console: Console, fleet: FleetRound) -> None:
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(fleet.cpu.items(), key=lambda item: -item[1]))
    console.print(f"CPU seconds: {spent}", highlight=False)
    mean = fleet.fsyncs.seconds / fleet.fsyncs.count * 1000 if fleet.fsyncs.count else 0.0
    console.print(f"etcd synced its log {fleet.fsyncs.count} times, {mean:.1f} ms each", highlight=False)
    tries = Counter(failure.partition("; ")[0] for m in fleet.joined.machines for failure in m.failures)
    again = "; ".join(f"{count} × {failure}" for failure, count in tries.most_common(3))
    console.print(f"machines had to try again {tries.total()} times{': ' + again if again else ''}", highlight=False)


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False, header_style="bold")
