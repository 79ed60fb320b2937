"""The service's account gets to a checkout that only root may enter, and to nothing beside it."""

import subprocess
from pathlib import Path

import pytest

from lab.account import reachable
from lab.processes import Account, wrapped

pytestmark = pytest.mark.tools
NOBODY = Account(65534, 65534)


def run_as_nobody(needs: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    full = reachable(wrapped(argv, account=NOBODY), NOBODY, [needs])
    return subprocess.run(full, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize("closed", [".", "checkout", "checkout/site"])
def test_a_closed_folder_is_opened_for_what_is_needed_alone(tmp_path: Path, closed: str) -> None:
    for path in ("checkout/README", "checkout/site/netboot.yaml", "secret"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    for folder in (tmp_path, tmp_path / "checkout", tmp_path / "checkout" / "site"):
        folder.chmod(0o755)
    (tmp_path / closed).chmod(0o700)
    needed = tmp_path / ("checkout/site" if closed == "checkout/site" else "checkout")
    file = needed / ("netboot.yaml" if closed == "checkout/site" else "README")
    shown = run_as_nobody(needed, "cat", str(file))
    assert (shown.stdout, shown.stderr) == (str(file.relative_to(tmp_path)), "")
    assert run_as_nobody(needed, "pwd").stdout.strip() == str(needed)
    if closed == ".":
        assert "No such file" in run_as_nobody(needed, "cat", str(tmp_path / "secret")).stderr
    assert (tmp_path / "secret").read_text() == "secret"
    assert "netboot-lab" not in Path("/proc/mounts").read_text()


def test_where_nothing_is_closed_nothing_is_done(tmp_path: Path) -> None:
    root = Account(0, 0)
    for folder in (tmp_path, *tmp_path.parents):
        assert folder.stat().st_mode & 0o100
    assert reachable(["true"], root, [tmp_path]) == ["true"]
