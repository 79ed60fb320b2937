"""Rollouts of simulated fleets: `python -m bench.rollouts [MACHINES …]` (default 437 and 5000).

Facts come at the ports of the controller that drives rollouts, machines reboot in a simulated clock, the file is real:
what a bad image harms, whether budgets are kept, and what a look costs.
"""

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from netboot.lifecycle import seen_time
from netboot.lifecycle.rollout import MemberState, RolloutState
from tests.rollout_world import World
from tests.rollouts import OLD

MOST_LOOKS = 48 * 60


def unlucky(percent: int) -> Callable[[str, str], bool]:
    """So many machines, always the same, do not come up with the new image."""

    def good(name: str, image: str) -> bool:
        lot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
        return image == OLD or lot % 100 >= percent

    return good


def run(machines: int, percent: int) -> str:
    """A rollout until it has ended or is paused, in a line."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), machines, 8, unlucky(percent), minutes=8, tick=60)
        world.start(canary=2, max_unavailable="5%", per_rack=2, bake="30m", deadline="30m")
        began = time.process_time()
        looks = 0
        while world.rollout().state is RolloutState.RUNNING and looks < MOST_LOOKS:
            world.tick()
            looks += 1
        states = [each.state for each in world.store.members(1).values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in MemberState if states.count(state))
        end = world.rollout().state
        world.close()
    cost = f"{1000 * world.looked / looks:.0f} ms of processor a look ({time.process_time() - began:.0f} s in all)"
    most = f"at most {world.most_out} out, {world.most_of_rack} of a rack; {len(world.harmed)} harmed"
    return f"{machines} machines, {percent} % fail: {end} after {looks / 60:.1f} h: {counts}; {most}; {cost}"


def main(arguments: list[str]) -> None:
    """Prints a line for each fleet and kind of image."""
    seen_time.LONGEST_STEP_MS = 60_000  # a look a minute, and what lies between two counts
    for machines in map(int, arguments or ["437", "5000"]):
        for percent in (2, 100):
            print(run(machines, percent), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
