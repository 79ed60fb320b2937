"""What is said of the service that should go by a configuration, by what its supervisor left on the disk."""

import re
from pathlib import Path

import pytest

from netboot.cli.in_force import in_force
from netboot.clock import monotonic_ms
from netboot.config import load_config
from netboot.status.supervisor import SupervisorStatus
from netboot.stores.status import write_status
from tests.sites import make_site

UNTOLD = "cannot tell whether a service goes by it"


@pytest.mark.parametrize(
    ("state", "quiet_ms", "words"),
    [
        (
            "running",
            20_000,
            "the one with data {data} was last heard 20 s ago: `netboot doctor` says whether it runs; {start}",
        ),
        ("running", -3_600_000, "none runs on this host with data {data}: of one elsewhere ask there, with its file"),
        ("stopping", 0, "none runs on this host with data {data}: of one elsewhere ask there, with its file"),
    ],
    ids=["silent", "of an earlier start of the host", "stopped"],
)
def test_a_service_that_is_silent_is_not_none(state: str, quiet_ms: int, words: str, tmp_path: Path) -> None:
    config = make_site(tmp_path)
    file = tmp_path / "netboot.yaml"
    said = {"state": state, "pid": 1, "uptime_ms": monotonic_ms() - quiet_ms, "processes": {}, "file": str(file)}
    write_status(config.data / "status", "supervisor", SupervisorStatus.model_validate(said))
    found = in_force(file, load_config(file))
    assert found.state == "unknown"
    told = re.sub(r"heard 2\d s", "heard 20 s", str(found))
    assert told == f"{UNTOLD}: {words.format(data=config.data, start='if not, start it')}"
