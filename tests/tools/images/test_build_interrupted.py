"""Ctrl-C while real tools run: mmdebstrap in its namespaces beside another step, both as the build has them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lab.errors import DeadlineError
from tests.processes import wait_for
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools

RETRY_POLICY = 120.0
BUILD = """
import sys
from pathlib import Path
from images.build.cache import Cache
from images.build.graph import Graph
from images.recipe.inherit import SHIPPED
from images.run import run
from images.build.sources import Mirror
from images.build.step import Step
from images.build.steps import bootstrap
from tests.unit.images.samples import unplanned
from tests.unit.images.test_graph import Inputs, Told

url, folder = sys.argv[1], Path(sys.argv[2])
keyring = (SHIPPED / "keys/debian-12-archive.asc").read_bytes()
mirror = Mirror(url, ("x",), ("main",), keyring, ".asc", ("0" * 64,), 1)

def beside(inputs, out, say):
    run(["sh", "-c", f"echo begun >{folder}/begun; exec sleep 1000"], cwd=out)

with Cache(folder / "cache") as cache, Graph(cache, Told()) as graph:
    graph.step(bootstrap.STEP, lambda: bootstrap.Inputs("x", "amd64", (mirror,), ("systemd",), 1, cache.packages))
    graph.step(Step("beside", 1, beside, outputs=(), inputs=unplanned), lambda: Inputs("1"))
"""


@contextmanager
def silent_mirror() -> Iterator[tuple[str, threading.Event]]:
    """A mirror that is asked and does not answer; and the event of its first question."""
    asked, end = threading.Event(), threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.set()
            end.wait(RETRY_POLICY)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            end.set()
            server.shutdown()
            thread.join()


def told_of(folder: Path) -> list[str]:
    """Command lines of living processes that name a folder or work in it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words, works_in = (entry / "cmdline").read_bytes(), str((entry / "cwd").readlink())
        except OSError:
            continue
        if str(folder).encode() in words or works_in.startswith(str(folder)):
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_no_process_no_mount_and_nothing_half_made_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    os.mkfifo(tmp_path / "begun")
    before = mounts()
    argv = [sys.executable, "-c", BUILD]
    with (
        silent_mirror() as (url, asked),
        subprocess.Popen([*argv, url, str(tmp_path)], stderr=subprocess.PIPE, text=True) as process,
    ):
        assert (tmp_path / "begun").read_text() == "begun\n"
        assert asked.wait(RETRY_POLICY)
        assert len(told_of(tmp_path)) > 2
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=RETRY_POLICY)
    assert process.returncode == -signal.SIGINT
    assert shown.splitlines()[-1] == "KeyboardInterrupt"
    with suppress(DeadlineError):
        wait_for(lambda: told_of(tmp_path) == [])  # the kernel ends what was in the tool's namespaces a moment later
    assert told_of(tmp_path) == []
    assert mounts() == before
    assert list((tmp_path / "cache/products").iterdir()) == list((tmp_path / "cache/tmp").iterdir()) == []
