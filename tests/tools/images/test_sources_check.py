"""`netboot image sources check` as an operator calls it: real gpg, real apt, a real HTTP server of a small archive."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from images.recipe.lockfile import Lock, Locked
from images.store.store import Store
from lab.work import ROOT
from tests.tools.images.apt_repository import AptRepository, repository
from tests.tools.images.file_server import served
from tests.unit.images import samples

pytestmark = pytest.mark.tools

NOW = 1_700_000_000
BASE, TOOL = ("base-of-all", "1.0", "one"), ("tool", "2:1.5-1", "two")
KERNEL = ("linux-image-6.1.0-9-test", "6.1.9", "three")
OF_KERNEL = ("extra-6.1.0-9-test", "6.1.9", "four")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AptRepository]:
    with repository(tmp_path_factory.mktemp("sources") / "archive") as made:
        yield made


def recipe(folder: Path, archive: AptRepository, sources: Mapping[str, str], *packages: str, more: str = "") -> Path:
    """A recipe over flat repositories, each with the archive's key."""
    (folder / "flat.asc").write_bytes(archive.key.read_bytes())
    listed = "".join(
        f"  - {{name: {name}, url: '{url}', suites: [/], signed_by: flat.asc}}\n" for name, url in sources.items()
    )
    path = folder / "tiny.yaml"
    path.write_text(
        f"distribution: debian\nsuite: flat\narchitecture: amd64\nbudget_mib: 10\n{more}sources:\n{listed}"
        f"kernel: {{package: {KERNEL[0]}}}\npackages: {json.dumps(packages)}\n"
    )
    return path


def check(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "netboot.cli.main", "image", "sources", "check", str(path), *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def value(path: Path, status: int) -> dict[str, Any]:
    done = check(path, "--output", "json")
    assert done.returncode == status, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def states(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {package["name"]: (package["state"], package["version"]) for package in found["packages"]}


def test_all_is_there_in_these_versions_and_nothing_to_compare_it_with(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL, OF_KERNEL)
    with served(archive.folder) as url:
        path = recipe(tmp_path, archive, {"main": url}, "base-of-all", "tool", "extra-{kernel}")
        found = value(path, 0)
        shown = check(path)
    assert (found["outcome"], found["problems"], found["against"], found["changes"]) == ("there", [], None, None)
    assert states(found) == {
        "base-of-all": ("there", "1.0"),
        "extra-{kernel}": ("there", "6.1.9"),
        KERNEL[0]: ("there", "6.1.9"),
        "tool": ("there", "2:1.5-1"),
    }
    assert [(source["state"], source["published"]) for source in found["sources"]] == [("there", NOW)]
    assert found["installs"] == 4
    assert shown.stdout.splitlines()[-3:] == [
        "4 packages in all; no lock and no image of this name to compare them with",
        "",
        "everything is there: `netboot image build tiny` finds what it asks for",
    ]
    assert [line.split()[0] for line in shown.stderr.splitlines()] == ["mirrors", "lists", "packages"]


def test_beside_its_lock_what_is_new_is_told(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL)
    lock = Lock(
        recipe="tiny", suite="flat", architecture="amd64", created=NOW, wanted=("base-of-all", KERNEL[0], "tool"),
        packages=(
            Locked(name="base-of-all", version="1.0", architecture="amd64"),
            Locked(name=KERNEL[0], version="6.1.8", architecture="amd64"),
        ),
    )  # fmt: skip
    (tmp_path / "tiny.lock").write_bytes(lock.to_bytes())
    with served(archive.folder) as url:
        found = value(recipe(tmp_path, archive, {"main": url}, "base-of-all", "tool", more="lock: tiny.lock\n"), 3)
    assert found["against"] == "lock tiny.lock"
    assert found["changes"] == {
        "added": {"tool:amd64": "2:1.5-1"},
        "removed": {},
        "changed": {f"{KERNEL[0]}:amd64": ["6.1.8", "6.1.9"]},
    }
    (problem,) = found["problems"]
    assert problem == (
        "the mirrors do not have any more what the lock asks for: linux-image-6.1.0-9-test=6.1.8:amd64; take them from "
        "a mirror of that day (a snapshot service's address as the source's url), or lock anew: `netboot image lock`"
    )


def test_beside_the_newest_image_of_its_name_what_is_new_is_told(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL)
    parts = samples.parts(tmp_path / "parts", "one")
    installed = [["base-of-all", "0.9", "amd64"], ["gone", "1", "all"], [KERNEL[0], "6.1.9", "amd64"]]
    parts["packages"].write_text(json.dumps(installed))
    manifest = samples.manifest(parts, "tiny").to_bytes()
    digest = Store(tmp_path / "store").add_image(manifest, samples.KEY.sign(manifest), parts)
    with served(archive.folder) as url:
        path = recipe(tmp_path, archive, {"main": url}, "base-of-all", "tool")
        done = check(path, "--store", str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    assert [re.sub(" +", " ", line).strip() for line in done.stdout.splitlines()[-6:]] == [
        f"package image {digest[:12]} today",
        "tool:amd64 2:1.5-1",
        "gone:all 1",
        "base-of-all:amd64 0.9 1.0",
        "",
        "everything is there: `netboot image build tiny` finds what it asks for",
    ]


def test_what_a_mirror_that_answers_does_not_have_is_missing(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, KERNEL)
    with served(archive.folder) as url:
        found = value(recipe(tmp_path, archive, {"main": url}, "base-of-all", "tool", "base-of-all=2.0"), 3)
    assert found["outcome"] == "missing"
    words = {package["name"]: package["words"] for package in found["packages"] if package["state"] == "missing"}
    assert words == {
        "tool": "none of the recipe's sources has it",
        "base-of-all=2.0": "the recipe's sources have it in other versions: 1.0",
    }


def test_what_a_mirror_that_does_not_answer_may_have_is_unknown(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, KERNEL)
    with served(archive.folder) as url:
        sources = {"main": url, "other": "http://127.0.0.1:9"}
        path = recipe(tmp_path, archive, sources, "base-of-all", "tool")
        found, shown = value(path, 5), check(path)
    assert [source["state"] for source in found["sources"]] == ["there", "unknown"]
    assert states(found) == {"base-of-all": ("there", "1.0"), KERNEL[0]: ("there", "6.1.9"), "tool": ("unknown", "")}
    assert found["sources"][1]["words"] == (
        "the mirror http://127.0.0.1:9 does not answer for suite /: connection refused. "
        "Check the network, set http_proxy (or apt's Acquire::http::Proxy) where a proxy is needed, "
        "or name another mirror under 'sources' in the recipe"
    )
    assert shown.returncode == 5
    assert shown.stdout.splitlines()[-1] == "cannot be told right now: try again, or name another mirror"


def test_a_mirror_without_the_suite_is_missing_and_not_unknown(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL)
    with served(archive.folder) as url:
        found = value(recipe(tmp_path, archive, {"main": url, "other": f"{url}/nowhere"}, "base-of-all", "tool"), 3)
    assert [source["state"] for source in found["sources"]] == ["there", "missing"]
    assert {state for state, _ in states(found).values()} == {"there"}


def test_a_listed_package_whose_file_is_not_there_is_missing(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL)
    (archive.folder / "tool_2:1.5-1_amd64.deb").unlink()
    with served(archive.folder) as url:
        found = value(recipe(tmp_path, archive, {"main": url}, "base-of-all", "tool"), 3)
    (tool,) = [package for package in found["packages"] if package["name"] == "tool"]
    assert (tool["state"], tool["version"]) == ("missing", "2:1.5-1")
    assert tool["words"] == (
        f"the mirror lists it, and does not have its file (404 for {url}/./tool_2:1.5-1_amd64.deb); "
        "try later, take another mirror, or name the version before"
    )


def test_a_file_of_the_kernels_version_that_is_not_there_is_got_around_by_the_kernel(
    archive: AptRepository, tmp_path: Path
) -> None:
    archive.publish(NOW, BASE, KERNEL, OF_KERNEL)
    (archive.folder / "extra-6.1.0-9-test_6.1.9_amd64.deb").unlink()
    with served(archive.folder) as url:
        found = value(recipe(tmp_path, archive, {"main": url}, "base-of-all", "extra-{kernel}"), 3)
    (extra,) = [package for package in found["packages"] if package["name"] == "extra-{kernel}"]
    assert (extra["state"], extra["version"]) == ("missing", "6.1.9")
    assert extra["words"] == (
        f"the mirror lists it, and does not have its file (404 for {url}/./extra-6.1.0-9-test_6.1.9_amd64.deb); "
        "try later, take another mirror, or name the version before, which is the kernel's: "
        "`kernel: {package: linux-image-VERSION}` of one for which it is there"
    )


def test_a_release_by_another_key_is_refused(archive: AptRepository, tmp_path: Path) -> None:
    archive.publish(NOW, BASE, TOOL, KERNEL)
    with repository(tmp_path / "strange") as strange, served(archive.folder) as url:
        path = recipe(tmp_path, strange, {"main": url}, "base-of-all", "tool")
        found = value(path, 4)
    assert (found["outcome"], found["sources"][0]["state"]) == ("refused", "refused")
    assert found["sources"][0]["words"].startswith(
        f"{url} is not signed as flat.asc wants it; compare the key's fingerprint with the archive's own word "
        '(docs/recipes.md, "Keys of archives"). apt says: '
    )
    assert {state for state, _ in states(found).values()} == {"unknown"}


@pytest.mark.parametrize(
    ("expires", "gpg_time", "status", "outcome", "told"),
    [
        ("1d", "20200101T000000", 4, "refused", "expired on 2020-01-02"),
        ("10d", None, 0, "there", "expires on "),
        ("90d", None, 0, "there", None),
    ],
)
def test_keys_that_expire_are_told(
    tmp_path: Path, expires: str, gpg_time: str | None, status: int, outcome: str, told: str | None
) -> None:
    with repository(tmp_path / "archive", expires, gpg_time) as short, served(short.folder) as url:
        short.publish(NOW, BASE, TOOL, KERNEL)
        found = value(recipe(tmp_path, short, {"main": url}, "base-of-all", "tool"), status)
    assert found["outcome"] == outcome
    words = [*found["warnings"], *found["problems"]]
    assert [text.split(": the key ")[0] for text in words] == ([f"source main, {url}"] if told else [])
    assert told is None or f" in flat.asc {told}" in words[0]
