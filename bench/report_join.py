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


def middle_fleet(found: Join) -> FleetRound:
    """The round with the median duration."""
    ordered = sorted(found.fleets, key=lambda one: one.joined.seconds)
    return ordered[len(ordered) // 2]


def join_verdicts(found: Join) -> list[Verdict]:
    """The issue's target, where as many nodes as it names were measured."""
    seconds = middle(one.joined.seconds for one in found.fleets)
    name = f"{found.nodes} nodes < {TARGET:.0f} s: seconds until all have a certificate"
    return [Verdict(name, seconds, TARGET, at_least=False)] if found.nodes >= NODES else []


def print_join(console: Console, found: Join) -> None:
    """Exchanges, tokens, the fleet, and what it cost whom."""
    _print_rates(console, found)
    middle_one = middle_fleet(found)
    seconds = ", ".join(f"{one.joined.seconds:.1f}" for one in found.fleets)
    console.print(f"{found.nodes} machines started at once, all with a certificate after {seconds} s", highlight=False)
    console.print(f"on {found.cores} cores, which the simulated machines share", highlight=False)
    table = _table("seconds", "median", "p99", "longest")
    for name, values in _phases(middle_one).items():
        table.add_row(name, f"{middle(values):.2f}", f"{p99(values):.2f}", f"{max(values):.2f}")
    console.print(table)
    _print_cost(console, middle_one)
    console.print(f"kube-controller-manager {' '.join(found.flags)}", highlight=False)
    console.print("at 20 requests/s it signs about 21 certificates/s: 437 take it 21 s whatever comes before", "")


def _print_rates(console: Console, found: Join) -> None:
    table = _table("", "/s", "hello p99 ms", "attest p99 ms", "CPU µs each", "/s a core would bear")
    pairs = found.pairs
    each = middle(one.cpu_us for one in pairs)
    hello, attest = (middle(p99(one.paired.phases[name]) * 1000 for one in pairs) for name in ("hello", "attest"))
    rate = middle(one.paired.per_second for one in pairs)
    table.add_row(
        "hello + attest, one core",
        f"{rate:.1f}",
        f"{hello:.0f}",
        f"{attest:.0f}",
        f"{each:,.0f}",
        f"{1e6 / each:.0f}",
    )
    cost = middle(one.cpu / one.tokens * 1e6 for one in found.issued)
    rate = middle(one.per_second for one in found.issued)
    table.add_row("tokens, the issuer alone", f"{rate:.1f}", "", "", f"{cost:,.0f}", f"{1e6 / cost:.0f}")
    console.print("join over TLS, a real apiserver behind it; TPMs in software, P-256, made before the clock starts")
    console.print(table, "")


def _phases(one: FleetRound) -> dict[str, list[float]]:
    machines = one.joined.machines
    phases = {name: [m.seconds[name] for m in machines] for name in ("hello", "attest", CERTIFICATE)}
    return {**phases, ALL: [m.end - m.start for m in machines]}


def _print_cost(console: Console, one: FleetRound) -> None:
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(one.cpu.items(), key=lambda item: -item[1]))
    console.print(f"CPU seconds: {spent}", highlight=False)
    mean = one.fsyncs.seconds / one.fsyncs.count * 1000 if one.fsyncs.count else 0.0
    console.print(f"etcd synced its log {one.fsyncs.count} times, {mean:.1f} ms each", highlight=False)
    tries = Counter(words.partition("; ")[0] for m in one.joined.machines for words in m.failures)
    again = "; ".join(f"{count} × {words}" for words, count in tries.most_common(3))
    console.print(f"machines had to try again {tries.total()} times{': ' + again if again else ''}", highlight=False)


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False, header_style="bold")
