"""Change one line of the product at a time and run the tests that have to see it.

Every mutant of tests/mutants/lines is tried on a copy of the tree: killed means that a test failed. One that survives
without a written excuse, one that is excused and yet killed, and one that could not be tried make the exit status 1.
"""

import argparse
import queue
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.mutants.catalogue import Mutant, MutantError, read
from tests.mutants.runner import DEADLINE_SECONDS, Copy, Outcome, Verdict, tests_of


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name (file: line → change) has this in it")
    parser.add_argument("--always", action="store_true", help="only those that `make test` tries")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree at work at once (default 2)")
    parser.add_argument("--list", action="store_true", help="say which there are, and end")
    return parser.parse_args(arguments)


@contextmanager
def _copies(count: int) -> Iterator["queue.SimpleQueue[Copy]"]:
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(count):
            free.put(Copy(Path(folder) / f"tree-{number}"))
        yield free


def _judged(mutants: Sequence[Mutant], jobs: int, console: Console) -> Iterator[Verdict]:
    """Verdicts as they come. Raises `MutantError` where the tests fail without any change."""
    stop = threading.Event()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with _copies(jobs) as free, Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("unchanged tree", total=len(mutants))
        copy = free.get()
        tests = tests_of(mutants)
        dealt = ["-n", str(jobs), "-p", "tests.plugins.workers"]  # one after the other they take long
        status, output = copy.run([*dealt, *tests], DEADLINE_SECONDS * len(tests))
        free.put(copy)
        if status != 0:
            raise MutantError(f"the tests do not pass on the unchanged tree:\n{output}")
        progress.update(task, description="mutants")

        def judge(mutant: Mutant) -> Verdict | None:
            if stop.is_set():
                return None
            copy = free.get()
            try:
                return copy.judge(mutant)
            finally:
                free.put(copy)
                progress.advance(task)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from filter(None, pool.map(judge, mutants))
            finally:
                stop.set()


def wrong(verdict: Verdict) -> str:
    """What is wrong with a verdict, or nothing."""
    mutant = verdict.mutant
    match verdict.outcome:
        case Outcome.SURVIVED if not mutant.excuse:
            return f"SURVIVED  {mutant.name}\n          no test of {' '.join(mutant.tests)} fails"
        case Outcome.KILLED if mutant.excuse:
            return f"KILLED    {mutant.name}\n          though excused: {mutant.excuse}"
        case Outcome.UNTRIED:
            return f"UNTRIED   {mutant.name}\n{verdict.output}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 when every mutant is killed or excused, 1 when not, 2 when nothing could be tried."""
    options, console = _options(arguments), Console(stderr=True)
    try:
        mutants = [mutant for mutant in read() if options.only in mutant.name and (mutant.always or not options.always)]
        if not mutants:
            raise MutantError(f"no mutant's name has {options.only!r} in it; --list says which there are")  # noqa: TRY301
        if options.list:
            print("\n".join(mutant.name for mutant in mutants))
            return 0
        verdicts = []
        for verdict in _judged(mutants, options.jobs, console):
            verdicts.append(verdict)
            if what := wrong(verdict):
                console.print(what, markup=False, highlight=False)
    except MutantError as error:
        console.print(str(error), markup=False, highlight=False)
        return 2
    counts = [f"{sum(verdict.outcome is outcome for verdict in verdicts)} {outcome.value}" for outcome in Outcome]
    print(f"{len(verdicts)} mutants: {', '.join(counts)}; excused: {sum(bool(m.excuse) for m in mutants)}")
    return int(any(wrong(verdict) for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
