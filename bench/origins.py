"""What several origins of the initrd's fetch add up to, and what one costs that lies or dies half-way."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.serving import BenchError
from bench.shaped import FAST_RATE, RATES
from bench.site import ROOT
from bench.stats import Verdict, middle, paired


@dataclass(frozen=True)
class Origins:
    """Seconds of each round for an image of `mib` MiB. `rest`: without the origin that is bad in `lies` and `dies`;
    `alone`: one origin on a fast link; `stream`: the same as one stream that is hashed when it is whole."""

    mib: int
    together: list[float]
    rest: list[float]
    lies: list[float]
    dies: list[float]
    alone: list[float]
    stream: list[float]

    @property
    def of_their_sum(self) -> float:
        """Throughput of all together as a part of what their links carry."""
        return self.mib * 2**20 * 8 / middle(self.together) / (sum(RATES) * 1e6)


def measure(folder: Path, rounds: int, mib: int) -> Origins:
    """In a network namespace of its own, as root.

    Raises:
        BenchError: links cannot be shaped here, or an image did not come whole.
    """
    place = folder / "origins"
    place.mkdir()
    argv = ["unshare", "--net", sys.executable, "-m", "bench.shaped", str(place), str(rounds), str(mib)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"origins: {done.stderr.strip().splitlines()[-1:]}")
    return Origins(mib, **json.loads(done.stdout))


def described(found: Origins) -> str:
    """One line for each case."""
    links = ", ".join(map(str, RATES))
    cases = {"together": found.together, "the honest rest": found.rest, "one lies": found.lies, "one dies": found.dies}
    times = ", ".join(f"{name} {middle(seconds):.1f} s" for name, seconds in cases.items())
    return (
        f"{found.mib} MiB from origins of {links} Mbit/s: {times}; from one of {FAST_RATE} Mbit/s: "
        f"{middle(found.alone):.2f} s, as one stream that is hashed when it is whole {middle(found.stream):.2f} s"
    )


def verdicts(found: Origins) -> list[Verdict]:
    """The issue's targets; and that one origin alone is not slower for the machinery."""
    return [
        Verdict("origins together ÷ sum of their links", found.of_their_sum, 0.85),
        Verdict("one origin lies half-way ÷ the honest rest", paired(found.lies, found.rest), 1.3, at_least=False),
        Verdict("one origin dies half-way ÷ the honest rest", paired(found.dies, found.rest), 1.3, at_least=False),
        Verdict("one fast origin ÷ one stream, then hashed", paired(found.alone, found.stream), 1.0, at_least=False),
    ]
