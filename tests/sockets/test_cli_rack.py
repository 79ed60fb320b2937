"""Where a machine stands, by which budgets and turns of rollouts go, as `netboot machine show` and the API say it."""

from pathlib import Path

import pytest

from tests.commands import Run, said
from tests.sites import INVENTORY
from tests.sockets.api import Api

SITE = (
    INVENTORY.replace('01"]}, profile: compute}', '01"]}, profile: compute, rack: r1}').replace(
        "serial: S2}, profile: compute}",
        "serial: S2}, profile: compute, rack: r1, topology: {accelerator_domain: nvl-2}}",
    )
    + "racks:\n  - {name: r1, topology: {accelerator_domain: nvl-1}}\n"
)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=SITE)


@pytest.mark.parametrize(("name", "domain"), [("gpu-001", "nvl-1"), ("gpu-002", "nvl-2")])
def test_rack_and_domain_are_shown_the_machine_s_word_over_its_rack_s(
    api: Api, run: Run, name: str, domain: str
) -> None:
    assert f"\nrack            r1\nNVLink domain   {domain}\n" in said(run, "machine", "show", name)
    for shown in (run("machine", "show", name, "-o", "json").json, api.get(f"/v1/machines/{name}").json):
        assert (shown["rack"], shown["accelerator_domain"]) == ("r1", domain)


def test_of_who_has_none_nothing_is_said(api: Api, run: Run) -> None:
    shown = said(run, "machine", "show", "off-001")
    assert "rack" not in shown
    assert "NVLink" not in shown
    answer = api.get("/v1/machines/off-001").json
    assert (answer["rack"], answer["accelerator_domain"]) == (None, None)
