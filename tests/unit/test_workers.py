"""What stays together on one worker, and what begins first."""

import subprocess
import sys
from pathlib import Path

from tests.plugins.workers import FIRST, GROUPS, group, rank

ROOT = Path(__file__).parents[2]


def test_machines_are_two_groups_by_their_images_and_a_cluster_is_one() -> None:
    assert group("tests/boot/test_hangs.py::test_a") == group("tests/boot/test_boots.py::test_b") == "machines"
    assert {group(f"tests/boot/test_{name}.py::test_a") for name in ("node", "unit", "servers", "demo")} == {"servers"}
    assert (
        group("tests/cluster/test_join.py::test_a") == group("tests/cluster/threats/test_tpm.py::test_b") == "cluster"
    )
    assert group("tests/tools/test_bench.py::test_a[x::y]") == group("tests/cluster/test_bench.py::test_b")


def test_every_other_file_is_a_group() -> None:
    path = "tests/unit/test_workers.py"
    assert group(f"{path}::test_a") == group(f"{path}::Some::test_b[tests/boot/x]") == path
    assert group("tests/bootstrap/test_a.py::test_a") == "tests/bootstrap/test_a.py"


def test_machines_begin_and_what_builds_alternates_with_what_waits() -> None:
    files = [
        "tests/unit/test_workers.py",
        "tests/tools/images/test_cpio.py",
        "tests/tools/images/test_build_servers.py",
        "tests/cluster/test_join.py",
        "tests/boot/test_servers.py",
        "tests/boot/test_boots.py",
        "tests/contract/test_store.py",
        "tests/boot/test_demo.py",
        "tests/sockets/test_api.py",
        "tests/tools/images/test_build_arm64.py",
        "tests/boot/test_hangs.py",
    ]
    assert sorted(files, key=rank) == [files[place] for place in (5, 10, 9, 3, 4, 7, 2, 8, 1, 0, 6)]


def test_what_is_named_is_there() -> None:
    assert [name for name in (*GROUPS, *FIRST) if not (ROOT / name).exists()] == []


def test_two_workers_share_the_groups_of_a_run_between_them(tmp_path: Path) -> None:
    """Each test says on which worker it runs: one file is on one, and both have work."""
    for name in ("test_a", "test_b"):
        tests = [
            f"def test_{number}(worker_id):\n    Path(__file__).with_suffix('.{number}').write_text(worker_id)\n"
            for number in range(3)
        ]
        (tmp_path / f"{name}.py").write_text("\n\n".join(["from pathlib import Path", *tests]))
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.plugins.workers", "--rootdir", str(tmp_path)]
    done = subprocess.run([*argv, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    workers = {name: {path.read_text() for path in tmp_path.glob(f"{name}.[0-9]")} for name in ("test_a", "test_b")}
    assert sorted(map(tuple, workers.values())) == [("gw0",), ("gw1",)]
