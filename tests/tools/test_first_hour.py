"""The first hour, as its page tells it: the wheel in an empty environment, an image, a service, a machine's script."""

import os
import shutil
from pathlib import Path

import pytest

from lab.packages import LOCK, locked, wheel
from lab.work import CACHE, ROOT
from tests.pages_run import run_page
from tests.sites import free_ports

pytestmark = pytest.mark.tools

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With what the page begins with, and nothing else."""
    built = wheel(tmp_path / "wheel")
    folder = tmp_path / "hour"
    folder.mkdir()
    shutil.copy(built, folder)
    (folder / LOCK).write_text(locked())
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Nothing of this tree and its environment; builds have the cache of all tests."""
    ours = ("PYTHON", "NETBOOT_", "VIRTUAL_ENV", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PATH": SYSTEM, "HOME": str(folder.parent), "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def test_every_command_of_the_first_hour_says_what_its_page_shows(folder: Path) -> None:
    provisioning, management = free_ports()
    listening = f"sed -i 's/:808[0]/:{provisioning}/; s/:808[1]/:{management}/' site/netboot.yaml"
    here = {
        "--site lab\n": f"--site lab && {listening}\n",
        ":8080": f":{provisioning}",
        ":8081": f":{management}",
    }
    run_page(ROOT / "docs/first-hour.md", folder, environment(folder) | {"NETBOOT_CACHE": str(CACHE / "build")}, here)
