"""`python -m bench` (`make bench`): ratios to peers side by side, what joining, booting and building images cost."""

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from rich.console import Console

from bench import (
    abuse,
    boot,
    flood,
    host,
    images,
    join,
    lifecycle,
    origins,
    page,
    report,
    report_boot,
    report_images,
    report_join,
    report_siege,
    rolling,
    scale,
    scripts,
    siege,
    storm,
    transfers,
)
from bench.besiegers import KINDS
from bench.peers import matchbox_version, nginx_version
from bench.serving import AbsentError, BenchError
from bench.stats import Verdict

PARTS = (
    *("scripts", "bytes", "abuse", "flood", "siege", "join"),
    *("images", "scale", "origins", "boot", "lifecycle", "rollout", "storm", "page"),
)
ROOT = Path(__file__).resolve().parent.parent
QUICK_NODES = 8


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"alternating rounds (default 7; boot: {boot.ROUNDS})")
    parser.add_argument("--seconds", type=float, default=2, help="seconds of one measurement (default 2)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part (may be repeated; default all)")
    parser.add_argument(
        "--nodes", type=int, help=f"machines that join at once (default {join.NODES}; storm: {storm.MACHINES})"
    )
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.add_argument(
        "--quick", action="store_true", help="one short round of everything, small: tries the bench itself"
    )
    options = parser.parse_args()
    asked = options.rounds
    of_all = options.nodes if options.nodes is not None else QUICK_NODES if options.quick else None
    options.nodes, options.storm = (join.NODES, storm.MACHINES) if of_all is None else (of_all, of_all)
    options.rounds, options.boots = (7, boot.ROUNDS) if asked is None else (asked, asked)
    if options.rounds < 1 or options.seconds < 1 or not 1 <= options.nodes <= join.MOST_NODES:
        parser.error(f"--rounds and --seconds must be at least 1, --nodes 1 to {join.MOST_NODES}")
    if options.quick:
        options.rounds, options.boots, options.seconds = 1, 1, 1
    return options


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(options: argparse.Namespace, console: Console, folder: Path) -> list[Verdict]:
    parts, verdicts = options.only or PARTS, []
    machine = host.describe()
    versions = {"matchbox": matchbox_version(), "nginx": nginx_version() or "absent"}
    console.print(f"{machine}\npeers: matchbox {versions['matchbox']}, {versions['nginx']}", "", highlight=False)
    found_scripts = found_bytes = found_abuse = found_siege = found_join = found_images = None
    if "scripts" in parts:
        sizes, held = ((1, 50), 100) if options.quick else (scripts.SIZES, scripts.HELD)
        found_scripts = scripts.measure(folder, ROOT / ".cache", options.rounds, options.seconds, sizes, held)
        report.print_scripts(console, found_scripts)
        _say_absent(console, found_scripts.absent)
        verdicts += report.script_verdicts(found_scripts)
    if "bytes" in parts:
        mib = 16 if options.quick else 128
        found_bytes = transfers.measure(folder, options.rounds, options.seconds, mib)
        report.print_bytes(console, found_bytes)
        _say_absent(console, found_bytes.absent)
        verdicts += report.byte_verdicts(found_bytes)
    if "abuse" in parts:
        machines, hold = (100, 3.0) if options.quick else (10_000, abuse.HOLD)
        found_abuse = abuse.measure(folder, options.rounds, options.seconds, machines, hold)
        report.print_abuse(console, found_abuse)
        verdicts += report.abuse_verdicts(found_abuse)
    flooded = None
    if "flood" in parts:
        flooded = flood.measure(folder, options.rounds, 4 if options.quick else flood.SECONDS)
        report.print_flood(console, flooded)
        verdicts += report.flood_verdicts(flooded)
    if "siege" in parts and (found_siege := _siege(options, console, folder)):
        verdicts += report_siege.siege_verdicts(found_siege)
    if "join" in parts:
        found_join = join.measure(folder, ROOT / ".cache", options.rounds, options.seconds, options.nodes)
        report_join.print_join(console, found_join)
        verdicts += report_join.join_verdicts(found_join)
    if "images" in parts:
        found_images = images.measure(folder, quick=options.quick)
        report_images.print_images(console, found_images)
        _say_absent(console, found_images.absent)
        verdicts += report_images.images_verdicts(found_images)
    found_scale = scale.measure(folder, quick=options.quick) if "scale" in parts else None
    if found_scale is not None:
        console.print(scale.described(found_scale), "", highlight=False)
        verdicts += scale.verdicts(found_scale)
    found_origins = _origins(options, console, folder) if "origins" in parts else None
    verdicts += origins.verdicts(found_origins) if found_origins else []
    found_boot = _boot(options, console, folder) if "boot" in parts else None
    found_lifecycle = _lifecycle(options, console, folder) if "lifecycle" in parts else None
    verdicts += report_boot.boot_verdicts(found_boot) if found_boot else []
    found_rollouts = _rollouts(options, console, folder) if "rollout" in parts else None
    verdicts += rolling.verdicts(found_rollouts) if found_rollouts else []
    found_storm = _storm(options, console, folder) if "storm" in parts else None
    verdicts += storm.verdicts(found_storm) if found_storm else []
    found_page = _page(options, console, folder) if "page" in parts else None
    verdicts += page.verdicts(found_page) if found_page else []
    report.print_verdicts(console, verdicts)
    if options.output == "json":
        judged = [{**asdict(verdict), "reached": verdict.reached} for verdict in verdicts]
        whole = report.as_json(
            found_scripts, found_bytes, found_abuse, found_join, host=asdict(machine), peers=versions, verdicts=judged
        )
        more = {
            "flood": flooded,
            "siege": found_siege,
            "images": found_images,
            "scale": found_scale,
            "origins": found_origins,
            "boot": found_boot,
            "lifecycle": found_lifecycle,
            "rollout": found_rollouts,
            "storm": found_storm,
            "page": found_page,
        }
        whole |= {name: asdict(found) for name, found in more.items() if found}
        sys.stdout.write(json.dumps(whole, indent=2) + "\n")
    return verdicts


def _siege(options: argparse.Namespace, console: Console, folder: Path) -> siege.Siege | None:
    kinds = ("nothing", "half a head") if options.quick else KINDS
    try:
        found = siege.measure(folder, options.rounds, options.seconds, kinds)
    except AbsentError as error:
        _say_absent(console, str(error))
        return None
    report_siege.print_siege(console, found)
    return found


def _origins(options: argparse.Namespace, console: Console, folder: Path) -> origins.Origins:
    rounds, mib = (1, 48) if options.quick else (options.rounds, 256)
    found = origins.measure(folder, rounds, mib)
    console.print(origins.described(found), "", highlight=False)
    return found


def _boot(options: argparse.Namespace, console: Console, folder: Path) -> boot.Boots | None:
    try:
        found = boot.measure(folder, options.boots, console)
    except AbsentError as error:
        _say_absent(console, str(error))
        return None
    report_boot.print_boot(console, found)
    return found


def _lifecycle(options: argparse.Namespace, console: Console, folder: Path) -> lifecycle.Lifecycle:
    seconds = 15.0 if options.quick else lifecycle.SECONDS
    (folder / "lifecycle").mkdir()
    found = lifecycle.measure(folder / "lifecycle", ROOT / ".cache", seconds, options.nodes)
    console.print(lifecycle.described(found), "", highlight=False)
    return found


def _rollouts(options: argparse.Namespace, console: Console, folder: Path) -> rolling.Rolling:
    (folder / "rollout").mkdir()
    found = rolling.measure(folder / "rollout", ROOT / ".cache", options.nodes, quick=options.quick)
    console.print(rolling.described(found), "", highlight=False)
    return found


def _storm(options: argparse.Namespace, console: Console, folder: Path) -> storm.Storm:
    (folder / "storm").mkdir()
    found = storm.measure(folder / "storm", ROOT / ".cache", options.storm)
    console.print(storm.described(found), "", highlight=False)
    return found


def _page(options: argparse.Namespace, console: Console, folder: Path) -> page.Pages:
    found = page.measure(folder, options.rounds, quick=options.quick)
    console.print(page.described(found), "", highlight=False)
    return found


def _say_absent(console: Console, reason: str) -> None:
    if reason:
        console.print(f"[bold yellow]not compared:[/] {reason}", "", highlight=False)


def main() -> int:
    """Exit status: 0 measured (whatever the figures: noise is not a failure), 1 could not measure, 130 interrupted."""
    options = _options()
    # With JSON on stdout, the tables go where progress goes.
    console = Console(stderr=options.output == "json", width=110)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        host.raise_file_limit()
        (ROOT / ".work").mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="bench-", dir=ROOT / ".work") as folder:
            Path(folder).chmod(0o711)  # some of what is measured runs as an account of its own
            _run(options, console, Path(folder))
    except (BenchError, ValueError) as error:
        console.print(f"bench: {error}", markup=False, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("bench: interrupted; everything has been stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
