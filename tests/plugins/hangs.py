"""How long a test may last before it has failed, for it waits for what does not come: a plugin, `-p
tests.plugins.hangs` (docs/decisions/282).

One that hangs would otherwise end the whole run at its limit of time, and nobody would learn which it was. It is no
measure of speed: on a machine that others use, too, tests last many times as long as on a free one.
"""

import pytest

SECONDS = 600.0
"""The fixtures of a test included, those that others share after it, too."""
WAITING_SECONDS = 1_800.0
"""Of what builds images, boots machines and waits for clusters: alone on two cores at most eight minutes."""


def limit(nodeid: str) -> float:
    """Seconds that a test may last."""
    from tests.plugins.reruns import ALLOWED  # a plugin, too: pytest imports it itself, whichever comes first

    return WAITING_SECONDS if nodeid.startswith(tuple(f"{folder}/" for folder in ALLOWED)) else SECONDS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.timeout(limit(item.nodeid), method="signal"))
