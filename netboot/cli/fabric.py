"""`netboot fabric`: who is slow with whom. Run by the operator, by kubectl or ssh; the service has no part."""

import shlex
from itertools import islice
from typing import Any

import click
import yaml

from netboot.cli.hosts import Choice, hosts_options
from netboot.cli.outcomes import CANNOT_TELL, VERDICT
from netboot.cli.output import output_option, progress, show
from netboot.cli.pairs import Conductor, Transport
from netboot.cli.paths import Paths
from netboot.fabric.pods import NAMESPACE, pods
from netboot.fabric.schedule import rounds
from netboot.fabric.tools import OVER, Over, Tool
from netboot.fabric.verdict import Measurement, Verdict, judge

VIA = f"kubectl exec --namespace {NAMESPACE} fabric-{{machine}} --"
SLOW = VERDICT
"""Exit status: somebody is slow."""


@click.group()
def group() -> None:
    """Measure the network between machines, pair by pair.

    \b
    Over RDMA (perftest) or TCP (iperf3), from Pods that you start and end with your own kubectl:
      netboot fabric pods --rack R1 --image registry.example/perftest | kubectl apply -f -
      netboot fabric check --rack R1
      kubectl delete namespace netboot-fabric
    or wherever you reach the machines by ssh:
      netboot fabric check --rack R1 --via 'ssh root@{machine}'
    """


@group.command("pods")
@click.option("--image", required=True, help="Container image with `sleep`, `timeout`, and ib_write_bw or iperf3.")
@click.option("--over", type=click.Choice(OVER), default="rdma", show_default=True, help="What will be measured.")
@hosts_options
def pods_(choice: Choice, paths: Paths, image: str, over: Over) -> None:
    """Print a Pod for each machine, for `kubectl apply -f -`: it sleeps, and `check` runs its tools in it.

    They use the machines' own network and, over RDMA, their devices (privileged), run beside whatever runs there, on
    every taint, and end by themselves after four hours. Drain the machines first, if jobs must not be disturbed.

    \b
    Example:
      netboot fabric pods --rack R1 --image registry.example/perftest | kubectl apply -f -
    """
    nodes = {machine.name: machine.node_name for machine in choice.machines(paths)}
    click.echo(yaml.safe_dump_all(pods(nodes, image, over), sort_keys=False), nl=False)


@group.command("check")
@click.option("--over", type=click.Choice(OVER), default="rdma", show_default=True, help="ib_write_bw, or iperf3.")
@click.option("--device", default="", help="RDMA card to use, like mlx5_0.  [default: the first]")
@click.option("--via", default=VIA, show_default=True, help="Runs a command on {machine}.")
@click.option("--address", help="Where others reach {machine}.  [default: `node.addresses`, else its name]")
@click.option("--seconds", type=click.IntRange(1, 60), default=3, show_default=True, help="Of each measurement.")
@click.option(
    "--rounds", "most", type=click.IntRange(1), help="Only so many rounds.  [default: everybody with everybody]"
)
@click.option("--least", type=click.FloatRange(0, min_open=True), help="Gbit/s: less is slow, whatever others have.")
@click.option(
    "--port", type=click.IntRange(1024, 65_000), default=18600, show_default=True, help="First of 64 TCP ports."
)
@click.option("--at-once", type=click.IntRange(1, 256), default=32, show_default=True, help="Pairs at a time.")
@output_option
@hosts_options
def check(choice: Choice, paths: Paths, output: str, most: int | None, least: float | None, **how: Any) -> None:
    """Measure MACHINES pair by pair, both ways, and say who is slow, and with whom.

    In each round a machine is in one pair; n machines meet in n - 1 rounds of about ten seconds. `--rounds 8` lets
    each meet eight others. A machine is slow if the median of what it sends, or receives, is an outlier among all (more
    than 3.5 by median and MAD, and a tenth below); then pairs of the others are judged alike. It needs four machines
    and three rounds; with fewer give --least. Nothing is changed on the machines, and nothing is left running.

    Ctrl-C ends it and tells what was measured so far.

    \b
    Exit status: 0 nobody is slow, 1 failed, 2 wrong usage, 5 cannot tell (a pair could
    not be measured, or too few for a verdict), 6 somebody is slow, 130 interrupted.

    \b
    Examples:
      netboot fabric check --rack R1
      netboot fabric check gpu-001 gpu-002 --over tcp --via 'ssh root@{machine}' --least 20
      netboot fabric check --all --rounds 8 --output json | jq .slow
    """
    machines = choice.machines(paths)
    names = [machine.name for machine in machines]
    template = how["address"]
    addresses = {
        machine.name: template.replace("{machine}", machine.name)
        if template
        else next(iter(machine.node.addresses), machine.name)
        for machine in machines
    }
    all_rounds = len(names) - 1 + len(names) % 2
    planned = 2 * (len(names) // 2) * min(most or all_rounds, all_rounds)
    tool = Tool(how["over"], how["port"], how["seconds"], how["device"])
    interrupted = False
    with progress("measuring", planned, 0.0, in_bytes=False) as done:
        conductor = Conductor(Transport(_words(how["via"]), addresses), tool, how["at_once"], done)
        try:
            conductor.conduct(islice(rounds(names), most))
        except KeyboardInterrupt:
            interrupted = True
    found = sorted(conductor.measurements, key=lambda one: (one.source, one.target))
    verdict = judge(found, least)
    value = _value(found, verdict, planned, interrupted=interrupted)
    if output == "json":
        show(output, value, (), ())
    else:
        _tell(names, verdict, value)
    if status := _status(verdict, interrupted=interrupted):
        raise click.exceptions.Exit(status)


def _words(via: str) -> list[str]:
    try:
        words = shlex.split(via)
    except ValueError as error:
        raise click.BadParameter(f"{via} is no command line ({error}): close its quotes", param_hint="--via") from None
    if not any("{machine}" in word for word in words):
        raise click.BadParameter("{machine} is not in it: put it where the machine's name is to be", param_hint="--via")
    return words


def _status(verdict: Verdict, *, interrupted: bool) -> int:
    if interrupted:
        return 130
    if verdict.hosts or verdict.pairs:
        return SLOW
    return 0 if verdict.judged and not verdict.unmeasured else CANNOT_TELL


def _pair(one: Measurement) -> dict[str, Any]:
    return {"from": one.source, "to": one.target, "gbps": _rounded(one.gbps), "words": one.words}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 3)


def _value(found: list[Measurement], verdict: Verdict, planned: int, *, interrupted: bool) -> dict[str, Any]:
    spread = verdict.spread
    return {
        "pairs": [_pair(one) for one in found],
        "hosts": {
            host: {"sends": _rounded(verdict.sends.get(host)), "receives": _rounded(verdict.receives.get(host))}
            for host in sorted({*verdict.sends, *verdict.receives})
        },
        "slow": {
            "hosts": [
                {"host": one.host, "way": one.way, "gbps": _rounded(one.gbps), "usual": _rounded(one.usual)}
                for one in verdict.hosts
            ],
            "pairs": [_pair(one) for one in verdict.pairs],
        },
        "median_gbps": _rounded(spread.median) if spread else None,
        "mad_gbps": _rounded(spread.mad) if spread else None,
        "planned": planned,
        "measured": len(found) - len(verdict.unmeasured),
        "judged": verdict.judged,
        "interrupted": interrupted,
    }


def _tell(names: list[str], verdict: Verdict, value: dict[str, Any]) -> None:
    slow = {(one.host, one.way) for one in verdict.hosts}
    rows = [
        (name, *(_cell(numbers.get(name), (name, way) in slow) for way, numbers in _ways(verdict))) for name in names
    ]
    show("table", None, ("machine", "sends Gbit/s", "receives Gbit/s"), rows)
    for host in verdict.hosts:
        click.echo(f"\nslow: {host.host} {host.way} {host.gbps:.4g} Gbit/s, the others' median is {host.usual:.4g}")
    for pair in verdict.pairs:
        click.echo(f"\nslow: {pair.source} to {pair.target} {pair.gbps:.4g} Gbit/s")
    for pair in verdict.unmeasured:
        click.echo(f"\nnot measured: {pair.source} to {pair.target}: {pair.words}")
    if verdict.spread and not verdict.judged:
        click.echo("\ncannot tell who is slow: that needs four machines and three rounds, or --least")
    spread = f"median {value['median_gbps']:g}, MAD {value['mad_gbps']:g} Gbit/s" if verdict.spread else "nothing"
    interrupted = ", interrupted" if value["interrupted"] else ""
    click.echo(f"\n{value['measured']} of {value['planned']} measured{interrupted}: {spread}")


def _ways(verdict: Verdict) -> tuple[tuple[str, Any], ...]:
    return ("sends", verdict.sends), ("receives", verdict.receives)


def _cell(gbps: float | None, slow: bool) -> str:
    return "" if gbps is None else f"{gbps:.4g}{'  SLOW' if slow else ''}"
