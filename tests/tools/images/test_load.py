"""Container images of a root are loaded and pinned at boot, and one that is damaged does not keep the others."""

import subprocess
from pathlib import Path

import pytest

from images.build.node_files import NODE

pytestmark = pytest.mark.tools

LOAD = NODE / "containers/usr/lib/netboot/load.sh"
CTR = """\
#!/bin/sh
echo "$*" >>asked
case "$*" in *bad.tar) exit 1 ;; *"list -q") printf 'localhost/a:1\\nlocalhost/b:1\\n' ;; esac
"""


def load(folder: Path, *archives: str) -> tuple[int, str, list[str]]:
    (folder / "bin").mkdir()
    (folder / "bin/ctr").write_text(CTR)
    (folder / "bin/ctr").chmod(0o755)
    (folder / "images").mkdir()
    for name in archives:
        (folder / "images" / name).touch()
    env = {"PATH": f"{folder}/bin:/usr/bin:/bin"}
    argv = ["sh", str(LOAD), "images"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, (folder / "asked").read_text().splitlines()


def test_every_archive_is_imported_and_every_image_pinned(tmp_path: Path) -> None:
    assert load(tmp_path, "1.tar", "2.tar") == (
        0,
        "",
        [
            "-n k8s.io images import images/1.tar",
            "-n k8s.io images import images/2.tar",
            "-n k8s.io images list -q",
            "-n k8s.io images label localhost/a:1 io.cri-containerd.pinned=pinned",
            "-n k8s.io images label localhost/b:1 io.cri-containerd.pinned=pinned",
        ],
    )


def test_one_that_fails_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    status, said, asked = load(tmp_path, "bad.tar", "good.tar")
    assert (status, said) == (1, "containerd does not take: images/bad.tar\n")
    assert "-n k8s.io images import images/good.tar" in asked
