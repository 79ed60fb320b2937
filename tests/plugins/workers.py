"""How tests are dealt to workers: a plugin for `-n 3`, `-p tests.plugins.workers` (docs/decisions/019).

What must not run at the same time, or shares something dear, is one group and stays with one worker, in its order. The
dearest groups go first, so that the workers end together.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

GROUPS = {"tests/boot": "machines", "tests/cluster": "cluster", "tests/tools/test_bench.py": "cluster"}
"""Machines share images, and one at a time is enough for a core; the tests of a cluster share it; both tests of the
bench count what benches leave behind. Every other file is a group by itself: it may have fixtures of its own."""
ALONE = ("tests/boot/test_demo.py",)
"""Groups by themselves all the same: what shares nothing with its neighbours and lasts a tenth of the run, so that no
worker has all machines and the others nothing left to do."""
FIRST = (
    "tests/boot/test_boots.py",
    "tests/boot/test_faults.py",
    "tests/boot/test_formats.py",
    "tests/boot/test_evidence.py",
    "tests/boot/test_pull_through.py",
    "tests/boot",
    "tests/tools/images/test_build_arm64.py",
    "tests/tools/images/test_build_servers.py",
    "tests/tools/images/test_build_node.py",
    "tests/cluster",
    "tests/boot/test_demo.py",
    "tests/tools",
    "tests/sockets",
)
"""What begins, in this order; the rest follows; of two that fit, the longer one. Machines boot the smallest image
first: meanwhile the others build the large ones, which all find in the build cache afterwards."""


def group(nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    return next((name for prefix, name in GROUPS.items() if _below(path, prefix) and path not in ALONE), path)


def rank(nodeid: str) -> int:
    path = nodeid.partition("::")[0]
    fitting = [prefix for prefix in FIRST if _below(path, prefix)]
    return FIRST.index(max(fitting, key=len)) if fitting else len(FIRST)


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


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
