"""The fifteen lines that matter most: changed, a test fails for each. All of them: `make mutants`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_matters_most_is_held_by_tests() -> None:
    argv = [sys.executable, "-m", "tests.mutants", "--always", "--jobs", "1"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)
    assert (done.returncode, done.stdout) == (
        0,
        "15 mutants: 15 killed, 0 survived, 0 untried; excused: 0\n",
    ), done.stderr
