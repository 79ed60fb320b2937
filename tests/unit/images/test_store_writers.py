"""Real writers in processes of their own: killed while they write, and refused space."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from images.store.check import check_image
from images.store.store import Store
from tests.unit.images import samples
from tests.unit.images.samples import KEY, add

HERE = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


WRITER = """
import sys
import tempfile
from pathlib import Path
from images.store.store import Store
from tests.unit.images.samples import add
store, folder, number = Store(Path(sys.argv[1])), Path(sys.argv[2]), 0
print("ready", flush=True)
while True:
    number += 1
    digest = add(store, folder, f"{sys.argv[3]}-{number}", root=bytes([number % 256]) * 200_000)
    store.set_channel("stable", digest)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_images(store: Store, tmp_path: Path) -> None:
    """Killed in the middle of adding images as fast as it can; step by step: `test_store_faults.py`."""
    for turn in range(8):
        argv = [sys.executable, "-c", WRITER, str(store.root), str(tmp_path / "parts"), str(turn)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=HERE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            try:
                writer.wait(timeout=0.03 * turn)
            except subprocess.TimeoutExpired:
                writer.send_signal(signal.SIGKILL)
        for digest in store.digests():
            assert check_image(store, digest, [KEY.public]) == ()
        for state in store.channels().values():
            assert state.image in store.digests()
    digest = add(store, tmp_path, "after")
    assert digest in store.digests()
    assert list((store.root / "tmp").iterdir()) == []


SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from images.store.store import Store
from tests.unit.images.test_store_writers import add_ready
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
add_ready(Store(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def add_ready(store: Store, folder: Path) -> str:
    """Add an image whose files are there already."""
    files = {name: folder / name for name in ("kernel", "initrd", "root", "packages")}
    data = samples.manifest(files).to_bytes()
    return store.add_image(data, KEY.sign(data), files)


def test_a_write_that_the_disk_refuses_leaves_nothing_half_written(store: Store, tmp_path: Path) -> None:
    one = add(store, tmp_path, "one")
    samples.parts(tmp_path / "large", "large", bytes(200_000))
    argv = [sys.executable, "-c", SMALL_DISK, str(store.root), str(tmp_path / "large")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=HERE, timeout=60)
    assert f"images.errors.StoreError: cannot write {store.root}/tmp/blob: File too large" in done.stderr
    assert store.digests() == (one,)
    assert list((store.root / "tmp").iterdir()) == []
