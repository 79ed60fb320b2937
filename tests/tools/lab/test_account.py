"""The service's account gets to a checkout that only root may enter, and to nothing beside it."""

import subprocess
from pathlib import Path

import pytest

from lab.account import as_the_service, reachable, service_account
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


def test_a_file_is_shown_alone_and_a_file_system_that_is_mounted_in_a_folder_with_it(tmp_path: Path) -> None:
    for path in ("token", "secret", "site/data/inside"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    script = 'mount -t tmpfs tmpfs "$1/site/data"; echo mounted >"$1/site/data/inside"; shift; exec "$@"'
    read = ["sh", "-c", f"cd {tmp_path}; find . -type f | sort; cat token site/data/inside"]
    argv = reachable(wrapped(read, account=NOBODY), NOBODY, [tmp_path / "site", tmp_path / "token"])
    begun = ["unshare", "--mount", "sh", "-euc", script, "sh", str(tmp_path), *argv]
    ran = subprocess.run(begun, capture_output=True, text=True, timeout=180, check=False)
    assert (ran.stdout, ran.stderr) == ("./site/data/inside\n./token\ntokenmounted\n", "")


def test_what_is_the_services_is_its_account_s_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "site/data").mkdir(parents=True)
    (tmp_path / "site/link").symlink_to(tmp_path / "other")
    for path in ("site/data/state", "token", "other"):
        (tmp_path / path).write_text("")
    argv = as_the_service(["id", "-u"], [tmp_path / "site", tmp_path / "token"], [tmp_path / "site"])
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=True)
    account = service_account()
    assert account is not None, "root runs these tests"
    assert ran.stdout == f"{account.uid}\n"
    given = [path for path in sorted(tmp_path.rglob("*")) if path.lstat().st_uid == account.uid]
    assert [str(path.relative_to(tmp_path)) for path in given] == [
        "site",
        "site/data",
        "site/data/state",
        "site/link",
        "token",
    ]


def test_where_nothing_is_closed_nothing_is_done(tmp_path: Path) -> None:
    root = Account(0, 0)
    for folder in (tmp_path, *tmp_path.parents):
        assert folder.stat().st_mode & 0o100
    assert reachable(["true"], root, [tmp_path]) == ["true"]
