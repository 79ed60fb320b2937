"""`netboot explain`, against the API: what is no machine's name, and what is no MAC address."""

from pathlib import Path

import pytest

from tests.commands import Ran
from tests.sockets.api import Api, of_alice
from tests.sockets.served import runner, served

INVENTORY = """\
channels: [{name: stable}]
profiles: [{name: compute, channel: stable}]
machines: [{name: gpu-001, match: {macs: ["52:54:00:12:34:56"]}, profile: compute}]
"""


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return of_alice(Api(tmp_path, inventory=INVENTORY))


def test_an_address_leads_to_the_claim(
    api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(api) as address:
        run = runner(address, api, capsys, monkeypatch)
        for mac in ("52:54:00:12:34:56", "52-54-00-12-34-56", "525400123456"):
            ran = run("explain", mac)
            said = f"Error: no machine is called {mac}, which is a MAC address"
            assert (ran.status, ran.err.splitlines()) == (
                3,
                [said, "Remedy: `netboot explain --mac 52:54:00:12:34:56`"],
            )
        said = (
            "Error: the inventory has no machine of that name; it has 1 machines\nRemedy: see `netboot machine list`\n"
        )
        assert run("explain", "nobody") == Ran(3, "", said)
        for no_mac, why in (
            ("zz", "not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)"),
            ("ff:ff:ff:ff:ff:ff", "not the address of one network card (a group, zero or broadcast address)"),
        ):
            ran = run("explain", "--mac", no_mac)
            words = f"Invalid value for '--mac': {no_mac!r} is {why}: give one like 52:54:00:12:34:56"
            assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: {words}")
        assert run("explain", "--mac", "5254.0012.3456").status == 5
