"""The bench's part `images`: what it asks of mkosi, what it judges and what it prints."""

import io
import itertools
from pathlib import Path

import pytest
from rich.console import Console

from bench import images
from bench.images import Build, Images, Peer, Site
from bench.report_images import images_verdicts, print_images
from bench.serving import AbsentError, BenchError

MIB = 1 << 20
COLD = Build(
    {"mirrors": 0.5, "bootstrap": 20.0, "configure": 1.0, "kernel": 0.5, "root": 1.0, "initrd": 4.0},
    25.0,
    {"kernel": 13 * MIB, "initrd": 2 * MIB, "root": 35 * MIB, "packages": 9},
)
WARM = Build({"mirrors": 0.5}, 0.7, COLD.bytes)
OVERLAY = Build({"mirrors": 0.5, "configure": 1.0, "root": 1.0}, 3.5, COLD.bytes)


def found(mkosi: Peer | None = None) -> Images:
    builds = {"nothing there": COLD, "nothing changed": WARM, "a file of the overlay": OVERLAY}
    return Images(builds, {"dev": COLD}, 80, mkosi, "")


def test_the_issues_targets() -> None:
    assert [(one.what, round(one.value, 3), one.reached) for one in images_verdicts(found())] == [
        ("seconds for a change of the overlay", 3.5, True),
        ("MiB of debian-12-minimal ÷ its budget", 0.625, True),
    ]


@pytest.mark.parametrize(("peer", "reached"), [(Peer("mkosi 14", 46.0, 70 * MIB), True), (Peer("m", 11.5, 7), False)])
def test_beside_mkosi_not_slower_and_not_larger(peer: Peer, reached: bool) -> None:
    """The initrd is nothing that mkosi makes here: 23 s are compared."""
    speed, size = images_verdicts(found(peer))[2:]
    assert (speed.what, speed.value) == ("build of a root ÷ mkosi, seconds", 23.0 / peer.seconds)
    assert (size.what, size.value) == ("root, dev ÷ mkosi, bytes", 35 * MIB / peer.size)
    assert speed.reached is size.reached is reached


def test_steps_stand_beside_each_other() -> None:
    out = io.StringIO()
    print_images(Console(file=out, width=110), found(Peer("mkosi 14", 46.0, 70 * MIB)))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["bootstrap", "20.0", "-", "-"] in lines
    assert ["configure", "1.0", "-", "1.0"] in lines
    assert ["in", "all", "25.0", "0.7", "3.5"] in lines
    assert ["mkosi", "14", "46.0", "70.0"] in lines
    assert "MiB: kernel 13.0, initrd 2.0, root 35.0; 50.0 of 80" in out.getvalue()


def test_mkosi_gets_the_same_packages_of_the_same_mirror(tmp_path: Path) -> None:
    recipe = Site(tmp_path).write(packages=["ethtool"], remove=["/usr/share/junk"])
    argv = images.mkosi_argv(recipe, tmp_path)
    given = dict(itertools.pairwise(argv))
    assert set(given["--package"].split(",")) == {*recipe.packages, "linux-image-cloud-amd64"}
    assert (given["--distribution"], given["--release"]) == ("debian", "bookworm")
    assert (given["--mirror"], given["--repositories"]) == ("http://deb.debian.org/debian", "main")
    assert {"--remove-files=/usr/share/junk", "--remove-files=/boot/*"} <= set(argv)


def test_without_mkosi_the_rest_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AbsentError, match="mkosi is not installed"):
        images.mkosi(Site(tmp_path).write(), tmp_path / "work")


def test_a_mkosi_that_cannot_work_here_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mkosi").write_text("#!/bin/sh\necho no user namespaces >&2\nexit 1\n")
    (tmp_path / "mkosi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(AbsentError, match=r"mkosi does not work here: exit status 1 .*no user namespaces"):
        images.mkosi(Site(tmp_path / "site").write(), tmp_path / "work")


def test_without_root_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BenchError, match="run the bench with sudo, or leave the part images out"):
        images.measure(tmp_path, quick=True)
