"""One image for the whole session; a folder with every log for each test, named where the test fails."""

import json
import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from lab.accelerator import accelerator
from lab.kube.recipe import node_recipe
from lab.site import make_site
from lab.work import CACHE, work_folder
from tests import arm64
from tests.boot.data_centre import BuiltImage
from tests.image_keys import image_keys

RECIPE = "debian-12-minimal"
NODE_RECIPE = "debian-12-node-demo"


@pytest.fixture(scope="session")
def work() -> Iterator[Path]:
    """`.work/tests-boot`, which stays after the run."""
    with work_folder("tests-boot") as folder:
        yield folder


@pytest.fixture(scope="session")
def built(work: Path) -> BuiltImage:
    """An image by the real command line, with the build cache of the demo."""
    return build(work / "builder", RECIPE)


@pytest.fixture(scope="session")
def built_erofs(work: Path) -> BuiltImage:
    """The same in its other forms: root as erofs, a unified kernel image, the kernel of servers, which has soft-RoCE;
    ways in, a journal sent, more of networks, what the fabric is measured with, a watchdog's driver and a hang."""
    recipe = work / "recipe-erofs/formats.yaml"
    shutil.copytree(Path(__file__).parent / "overlay", recipe.parent / "overlay", dirs_exist_ok=True)
    recipe.write_text(
        f"base: {RECIPE}\nroot_format: erofs\nuki: true\ndebug: [console-login]\nbudget_mib: 120\n"
        "features: [time, ssh, journal-upload, netconsole]\n"
        "kernel: {package: linux-image-amd64}\n"
        "modules: {initrd: [i6300esb], root: [i6300esb, rdma_rxe, crc32_generic]}\n"
        "packages: [perftest, ibverbs-providers]\n"
        "overlay: [overlay]\nunits: {show-network.service: enable, hang.service: enable}\n"
    )
    return build(work / "erofs-builder", str(recipe))


@pytest.fixture(scope="session")
def built_dracut(work: Path) -> BuiltImage:
    """The same with an initrd by dracut, which has programs and modules for disks on a network."""
    recipe = work / "recipe-dracut/dracut.yaml"
    recipe.parent.mkdir()
    recipe.write_text(
        f"base: {RECIPE}\nbudget_mib: 120\nmodules: {{initrd: [dm_multipath, iscsi_tcp]}}\n"
        "dracut: {modules: [multipath, iscsi], packages: [multipath-tools, open-iscsi]}\n"
    )
    return build(work / "dracut-builder", str(recipe))


@pytest.fixture(scope="session")
def built_node(work: Path) -> BuiltImage:
    """The same of a node, with the lab's kubelet and container images."""
    return build(work / "node-builder", str(node_recipe(NODE_RECIPE, work / "recipe", CACHE)))


@pytest.fixture(scope="session")
def built_arm64(work: Path) -> BuiltImage:
    """The same of an arm64 server, whose kubelet is none."""
    return build(work / "arm64-builder", str(arm64.recipe("debian-12-arm64", work / "arm64-recipe")))


@pytest.fixture(scope="session")
def built_cpu(work: Path) -> BuiltImage:
    """debian-12-cpu as it is shipped, but for the lab's kubelet: with its own profile and budget."""
    return build(work / "cpu-builder", str(node_recipe("debian-12-cpu", work / "recipe-cpu", CACHE)))


@pytest.fixture(scope="session")
def built_gpu(work: Path) -> BuiltImage:
    """debian-12-gpu by the quick profile: larger than release, so that its budget holds for that all the more."""
    recipe = node_recipe("debian-12-gpu", work / "recipe-gpu", CACHE)
    return build(work / "gpu-builder", str(recipe), "--profile", "dev")


def build(folder: Path, recipe: str, *options: str) -> BuiltImage:
    site = make_site(folder, "127.0.0.1", keys=image_keys())
    argv = ("image", "build", recipe, "--cache", str(CACHE / "build"), "--output", "json", *options)
    made = json.loads(site.netboot(*argv))
    shown = json.loads(site.netboot("image", "show", made["image"], "--output", "json"))
    kernel = site.store / "blobs" / shown["manifest"]["artifacts"]["kernel"]["sha256"]
    runs_by = accelerator(kernel, CACHE / "lab") if shown["manifest"]["architecture"] == "amd64" else "tcg"
    return BuiltImage(site, made["image"], shown["manifest"], runs_by)


@pytest.fixture
def folder(work: Path, request: pytest.FixtureRequest) -> Path:
    """Where this test's logs are. What a first try that was too late left there is beside it, in `<name>.first`."""
    return set_aside(work / re.sub(r"\W+", "-", request.node.name))


def set_aside(folder: Path) -> Path:
    """`folder`, which is not there: a second try makes its site in it, and could not in what the first one left."""
    if folder.exists():
        folder.rename(folder.with_name(f"{folder.name}.first"))
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say where the console logs are, where a test failed."""
    report = yield
    where = getattr(item, "funcargs", {}).get("folder")
    if report.failed and where is not None:
        report.sections.append(("logs", f"consoles, service, dnsmasq: {where}"))
    return report
