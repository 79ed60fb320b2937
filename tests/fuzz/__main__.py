"""Fuzz every parser that reads what a stranger sent, guided by coverage (Atheris, libFuzzer), for a time each.

An input that breaks a parser is kept in tests/fuzz/corpus/<target>/, where `make test` reads it from then on, and makes
the exit status 1. With --keep, inputs that reach code which the corpus did not reach are kept, too.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.fuzz.targets import CORPUS, TARGETS

ROOT = Path(__file__).resolve().parents[2]
MOST_KEPT = 40
"""Files of a target's corpus in the tree; the smallest that reach most."""
_EXECUTED = re.compile(r"stat::number_of_executed_units: +(\d+)")
_COVERED = re.compile(r"\bcov: (\d+)")


@dataclass(frozen=True)
class Result:
    """What came of a target. `covered`: edges reached; `broken`: files of inputs; `output`: the end of libFuzzer's."""

    name: str
    executed: int
    covered: int
    broken: tuple[Path, ...]
    output: str


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of each target (default 60)")
    parser.add_argument("--jobs", type=int, default=2, help="targets at once (default 2)")
    parser.add_argument("--only", choices=TARGETS, action="append", metavar="TARGET", help="this one (may be repeated)")
    parser.add_argument("--keep", action="store_true", help="keep inputs that reach what the corpus did not")
    return parser.parse_args(arguments)


def _libfuzzer(name: str, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "tests.fuzz.one", name, "-timeout=10", "-rss_limit_mb=1024", *arguments]
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
    )


def fuzz(name: str, seconds: int, *, keep: bool) -> Result:
    """One target for `seconds`."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        found, broken = Path(scratch, "found"), Path(scratch, "broken")
        found.mkdir()
        broken.mkdir()
        corpus = CORPUS / name
        limits = f"-max_total_time={seconds}", f"-artifact_prefix={broken}/", "-print_final_stats=1"
        done = _libfuzzer(name, *limits, str(found), str(corpus), seconds=seconds + 300)
        kept = tuple(Path(shutil.copy2(path, corpus / path.name)) for path in sorted(broken.iterdir()))
        if keep and not kept:
            _keep(name, found)
    executed, covered = (re.findall(pattern, done.stderr) or ["0"] for pattern in (_EXECUTED, _COVERED))
    return Result(name, int(executed[-1]), int(covered[-1]), kept, _end(done.stdout + done.stderr))


def _keep(name: str, found: Path) -> None:
    """Add to the corpus what reaches more than it: `found`, minimised."""
    corpus = CORPUS / name
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        for path in corpus.iterdir():
            shutil.copy2(path, scratch)
        _libfuzzer(name, "-merge=1", scratch, str(found), seconds=600)
        new = [path for path in Path(scratch).iterdir() if not (corpus / path.name).exists()]
        room = MOST_KEPT - len(list(corpus.iterdir()))
        for path in sorted(new, key=lambda path: (path.stat().st_size, path.name))[: max(room, 0)]:
            shutil.copy2(path, corpus)


def _end(output: str) -> str:
    lines = output.splitlines()
    start = next((place for place, line in enumerate(lines) if "Uncaught Python exception" in line), -20)
    return "\n".join(lines[start:][:30])


def _results(names: Sequence[str], options: argparse.Namespace, console: Console) -> Iterator[Result]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress, ThreadPoolExecutor(options.jobs) as pool:
        task = progress.add_task(f"{options.seconds} s each", total=len(names))
        for result in pool.map(lambda name: fuzz(name, options.seconds, keep=options.keep), names):
            progress.advance(task)
            yield result


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 when no input broke a target and every target was tried, else 1."""
    options, console = _options(arguments), Console(stderr=True)
    table = Table("target", "inputs", "edges reached", "broken by")
    failed = False
    for result in _results(options.only or list(TARGETS), options, console):
        table.add_row(result.name, f"{result.executed:,}", f"{result.covered:,}", str(len(result.broken)))
        if result.broken or result.executed == 0:
            failed = True
            console.print(f"{result.name}: {result.output}", markup=False, highlight=False)
            for path in result.broken:
                console.print(f"kept: {path.relative_to(ROOT)}", markup=False, highlight=False)
    Console().print(table)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
