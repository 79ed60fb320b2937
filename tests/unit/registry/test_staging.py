"""The folder of a download: gone however it ends, and never another's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from images.errors import StoreError
from images.registry.staging import staging

HOLD = "import sys, os; from pathlib import Path; from images.registry.staging import staging\n"
HOLD += "with staging(Path(sys.argv[1])) as f:\n (f / 'half').write_bytes(b'x'); print(f, flush=True); sys.stdin.read()"


def test_gone_when_the_block_ends(tmp_path: Path) -> None:
    with staging(tmp_path) as folder:
        (folder / "part").write_bytes(b"half")
        with staging(tmp_path) as other:
            assert other != folder
        assert (folder / "part").exists()
    assert list((tmp_path / "incoming").iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_gone_when_it_is_broken_off(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), staging(tmp_path) as folder:
        (folder / "part").write_bytes(b"half")
        raise error
    assert list((tmp_path / "incoming").iterdir()) == []


def test_what_a_killed_one_left_is_swept_by_the_next(tmp_path: Path) -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with held:
        assert held.stdout is not None
        folder = Path(held.stdout.readline().strip())
        with staging(tmp_path):
            assert (folder / "half").exists()
        held.kill()
    assert (folder / "half").exists()
    with staging(tmp_path) as mine:
        assert os.listdir(tmp_path / "incoming") == [mine.name]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "incoming").write_bytes(b"")
    with pytest.raises(StoreError) as error, staging(tmp_path):
        pass
    assert str(error.value) == f"cannot write to {tmp_path}/incoming: File exists"
