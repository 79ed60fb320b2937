"""The first hour, as its page tells it: the wheel in an empty environment, an image, a service, a machine's script."""

import shutil
from pathlib import Path

import pytest

from lab.lock import LOCK, locked
from lab.packages import wheel
from lab.work import CACHE, ROOT
from tests.pages_run import of_a_new_account, run_page
from tests.sites import free_ports

pytestmark = pytest.mark.tools


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With what the page begins with, and nothing else."""
    built = wheel(tmp_path / "wheel")
    folder = tmp_path / "hour"
    folder.mkdir()
    shutil.copy(built, folder)
    (folder / LOCK).write_text(locked())
    return folder


def test_every_command_of_the_first_hour_says_what_its_page_shows(folder: Path) -> None:
    provisioning, management = free_ports()
    for_operators = f"sed -i 's/:808[1]/:{management}/' site/netboot.yaml"  # machines' port is as --url says
    here = {
        "--site lab\n": f"--site lab && {for_operators}\n",
        ":8080": f":{provisioning}",
        ":8081": f":{management}",
    }
    environment = of_a_new_account(folder.parent) | {"NETBOOT_CACHE": str(CACHE / "build")}
    run_page(ROOT / "docs/first-hour.md", folder, environment, here)
