"""How tests are dealt to workers: a plugin for `-n 3`, `-p tests.plugins.workers` (docs/decisions/019).

What must not run at the same time, or shares something dear, is one group and stays with one worker, in its order.
Groups that last long go first, so that the workers end together.
"""

from collections.abc import Iterable

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/boot": "machines",
    "tests/boot/test_discovery.py": "servers",
    "tests/boot/test_node.py": "servers",
    "tests/boot/test_unit.py": "servers",
    "tests/boot/test_servers.py": "servers",
    "tests/boot/test_demo.py": "servers",
    "tests/boot/test_demo_replicas.py": "servers",
    "tests/cluster": "cluster",
    "tests/tools/test_bench.py": "cluster",
}
"""Machines share images, and one at a time is enough for a core. Those of the images of servers share nothing with the
others but the build cache, nor does the demo: in one group all of them would end a run alone. They are one, for two
nodes that come up at once, with two processors each, make each other late. The tests of a cluster share it; both tests
of the bench count what benches leave behind. Every other file is a group by itself: it may have fixtures of its own."""
FIRST = (
    "tests/boot/test_boots.py",
    "tests/boot/test_faults.py",
    "tests/boot/test_formats.py",
    "tests/boot/test_evidence.py",
    "tests/boot/test_pull_through.py",
    "tests/boot",
    "tests/tools/images/test_build_arm64.py",
    "tests/cluster",
    "tests/boot/test_node.py",
    "tests/boot/test_discovery.py",
    "tests/boot/test_unit.py",
    "tests/boot/test_servers.py",
    "tests/boot/test_demo.py",
    "tests/boot/test_demo_replicas.py",
    "tests/tools/images/test_build_servers.py",
    "tests/sockets",
    "tests/tools",
)
"""What begins, in this order; the rest follows. Machines boot the smallest image first: meanwhile another worker builds
the large ones, which all find in the build cache afterwards. The third has what waits for others most of its time, a
cluster and sockets, so that these do not leave the cores idle at the end of a run."""


def group(nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    place = _place(path, GROUPS)
    return path if place is None else GROUPS[place]


def rank(nodeid: str) -> int:
    place = _place(nodeid.partition("::")[0], FIRST)
    return len(FIRST) if place is None else FIRST.index(place)


def _place(path: str, places: Iterable[str]) -> str | None:
    """The file or folder that a test is in; of two that fit, the inner one."""
    fitting = (place for place in places if path == place or path.startswith(f"{place}/"))
    return max(fitting, key=len, default=None)


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist brings no types
    """xdist's scheduler of groups, with groups of ours."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    config.option.loadscopereorder = False  # else the group of the most tests begins, whatever they last
    return ByGroup(config, log)
