"""A wheel has the pages that its messages name, and a command that prints them."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab.packages import wheel
from lab.work import ROOT

pytestmark = pytest.mark.tools


def test_a_wheel_has_the_pages_that_messages_name(tmp_path: Path) -> None:
    built = wheel(tmp_path / "wheel")
    with zipfile.ZipFile(built) as read:
        read.extractall(tmp_path / "there")
    pages = {path.name for path in (tmp_path / "there/netboot/docs").iterdir()}
    assert pages == {path.name for path in (ROOT / "docs").glob("*.md")}

    def docs(*words: str) -> str:
        command = [sys.executable, "-c", "from netboot.cli.main import main; main()", "docs", *words]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert docs().splitlines()[0] == f"{tmp_path}/there/netboot/docs"
    assert docs("docs/store.md") == (ROOT / "docs/store.md").read_text()
