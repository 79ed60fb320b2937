"""Runs tests against mutants, each in a copy of the tree, so that the tree itself is never changed."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lab.kube.binaries import VERSION
from tests.mutants.catalogue import ROOT, Mutant, MutantError

DEADLINE_SECONDS = 300.0
"""Of the tests of one mutant, and of each entry of the unchanged tree's. One that hangs is seen, too."""
MADE = (".git", ".venv", ".cache", ".work", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info")
"""What builds and tests leave in the tree."""
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
"""Exit statuses of pytest; all others say that it could not try."""
_COLLECTING = "ERROR collecting"


class Outcome(Enum):
    """What the tests said of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNTRIED = "untried"


@dataclass(frozen=True)
class Verdict:
    """An outcome, with the end of pytest's output."""

    mutant: Mutant
    outcome: Outcome
    output: str


class Copy:
    """The files of the tree in a folder of its own, one mutant at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._turn = 0
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*MADE))

    def judge(self, mutant: Mutant) -> Verdict:
        """Apply `mutant`, run its tests, take it back. Raises `MutantError` where it does not fit the tree."""
        path = self.folder / mutant.file
        try:
            original = path.read_text()
        except OSError as error:
            raise MutantError(f"{mutant.name}: {error}") from error
        try:
            self._write(path, mutant.applied(original))
            status, output = self.run(mutant.tests)
        finally:
            self._write(path, original)
        return Verdict(mutant, outcome_of(status, output), output)

    def run(self, tests: Iterable[str], seconds: float = DEADLINE_SECONDS) -> tuple[int, str]:
        """Exit status and end of the output of pytest on the copy, with `tests` until the first that fails."""
        argv = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
        # What tests start is the copy's code too, whatever folder they start it in.
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "NETBOOT_IN_MUTANT": "1"}
        # The copy has no cache, and to build Kubernetes' programs takes longer than the deadline.
        environment.setdefault("KUBEBUILDER_ASSETS", str(ROOT / ".cache" / f"kube-{VERSION}"))
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                _kill(process)
                return _FAILED, f"no end within {seconds:.0f} s"
            except BaseException:
                _kill(process)
                raise
        return process.returncode, output[-3000:]

    def _write(self, path: Path, text: str) -> None:
        """Python knows a compiled file for current by its source's size and second: each write is of another second."""
        path.write_text(text)
        self._turn += 1
        seconds = path.stat().st_mtime + 2 * self._turn
        os.utime(path, (seconds, seconds))


def outcome_of(status: int, output: str) -> Outcome:
    """What pytest's exit status says. A test's module that no longer loads has seen the change, like a failed test."""
    if status == _FAILED or (status == _INTERRUPTED and _COLLECTING in output):
        return Outcome.KILLED
    return Outcome.SURVIVED if status == _PASSED else Outcome.UNTRIED


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tests_of(mutants: Sequence[Mutant]) -> list[str]:
    """Each test of `mutants` once, in order."""
    return list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
