"""`netboot image build`: messages, exit, output; the build itself is replaced (tests/tools has the real one)."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import rsa
from rich.console import Console

from images.artifact.keyring import KeyRing
from images.artifact.manifest import Artifacts, Manifest
from images.artifact.measure import measure
from images.build import surroundings
from images.build.cache import Cache
from images.build.pipeline import Built
from images.build.secureboot import SecureBootKey
from images.build.step import Product
from images.build.surroundings import Surroundings
from images.errors import ImageError, RecipeError
from images.recipe.recipe import Recipe
from images.store.store import Store
from images.values.finding import BudgetError, Finding, GateError
from images.values.strict import FaultsError
from netboot.cli import build as command
from netboot.cli import fit
from netboot.cli.building import Building
from netboot.cli.rebuild import Request, rebuild
from netboot.cli.recipes import load_recipe
from netboot.machines.fit import Candidate
from tests.commands import Run
from tests.sites import make_site
from tests.unit.images.test_secureboot import write_pair


@pytest.fixture
def site(tmp_path: Path) -> Path:
    KeyRing(tmp_path / "keys").create()
    return tmp_path


def invoke(site: Path, *arguments: str) -> Any:
    options = ["--store", f"{site}/store", "--keys", f"{site}/keys", "--cache", f"{site}/cache"]
    return CliRunner().invoke(command.build, [*arguments, *options])


def fake_build(content: str = "root") -> Any:
    """A build that ends at once, with the profile's name in its root image."""

    def build(
        recipe: Recipe, keys: dict[str, bytes], cache: Cache, progress: Building, secure_boot: SecureBootKey | None
    ) -> Built:
        signed = f" signed by {secure_boot.certificate_file.name}" if secure_boot else ""
        folder = cache._folder / f"fake-{content}-{recipe.profile}"
        folder.mkdir(exist_ok=True)
        progress.begin("bootstrap")
        progress.line("bootstrap", "Unpacking")
        progress.end("bootstrap", 1.25, cached=False)
        progress.end("root", 0.001, cached=True)
        paths = {name: folder / name for name in ("kernel", "initrd", "root", "packages")}
        for name, path in paths.items():
            path.write_text(f"{name} {content} {recipe.profile}{signed}")
        found = {name: measure(path, chunks=name == "root") for name, path in paths.items()}
        made = Manifest(
            name=recipe.name, distribution="debian", suite="bookworm", architecture="amd64", recipe="5" * 64, epoch=0,
            created=1000, kernel_version="6.1", ram_mib=300, artifacts=Artifacts(**found),
        )  # fmt: skip
        (folder / "manifest.json").write_bytes(made.to_bytes())
        passed = {"gate": "secrets", "looked_at": "3 files", "passed_over": ["/etc/a holds a login: an example"]}
        gates = [{"gate": "kernel", "looked_at": "6.1: 21 modules"}, passed]
        (folder / "gates.json").write_text(json.dumps(gates))
        return Built(made, paths, {"manifest": Product("k", folder), "gates": Product("g", folder)})

    return build


def test_a_build_ends_in_the_store(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    done = invoke(site, "debian-12-minimal", "--output", "json")
    assert done.exception is None
    result = json.loads(done.stdout)
    (image,) = Store(site / "store").images()
    assert result["image"] == image.digest
    assert result["name"] == "debian-12-minimal"
    assert [step["step"] for step in result["steps"]] == ["bootstrap", "root", "sign", "store"]
    assert result["steps"][:2] == [
        {"step": "bootstrap", "seconds": 1.25, "cached": False},
        {"step": "root", "seconds": 0.001, "cached": True},
    ]
    assert done.stderr.splitlines()[:2] == ["bootstrap    1.2 s", "root        cached"]


def test_what_people_see(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    lines = invoke(site, "debian-12-minimal").stdout.splitlines()
    (image,) = Store(site / "store").images()
    assert lines[0] == f"{image.digest}  debian-12-minimal"
    assert lines[1] == "kernel 6.1; MiB: kernel 0.0, initrd 0.0, root 0.0; needs 300 MiB of memory"
    assert lines[2:4] == ["2 gates passed", "gate secrets passed over: /etc/a holds a login: an example"]
    assert lines[5] == f"next: netboot channel set CHANNEL {image.digest[:12]}"


def test_keys_that_expire_soon_are_told_and_expired_ones_end_it(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    warning = "source kubernetes, https://pkgs.k8s.io/core:/stable:/v1.34/deb: the key DE15B14486CD377B9E876E1A234654DA"
    monkeypatch.setattr("netboot.cli.build.time.time", lambda: 1_798_000_000.0)
    done = invoke(site, "debian-12-node", "--output", "json")
    assert [text.startswith(warning) for text in json.loads(done.stdout)["warnings"]] == [True]
    assert done.stderr.startswith(f"warning: {warning}")
    monkeypatch.setattr("netboot.cli.build.time.time", lambda: 1_799_000_000.0)
    done = invoke(site, "debian-12-node", "--output", "json")
    assert isinstance(done.exception, RecipeError)
    assert str(done.exception).startswith(warning)
    assert (done.stdout, len(Store(site / "store").images())) == ("", 1)


def test_another_profile(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    assert invoke(site, "debian-12-minimal", "--profile", "release").exception is None
    (image,) = Store(site / "store").images()
    assert Store(site / "store").blob_path(image.manifest.artifacts.root.sha256).read_text() == "root root release"


def test_a_secure_boot_key_is_checked_before_anything_is_done(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    key, certificate = write_pair(site / "sb", rsa.generate_private_key(65537, 2048))
    (site / "mine.yaml").write_text("base: debian-12-minimal\nuki: true\n")
    both = ("--uki-key", str(key), "--uki-cert", str(certificate))
    assert str(invoke(site, f"{site}/mine.yaml", *both[:2]).exception) == (
        "--uki-key and --uki-cert go together: a key and its certificate"
    )
    assert str(invoke(site, "debian-12-minimal", *both).exception) == (
        "debian-12-minimal has no UKI to sign; put `uki: true` into the recipe"
    )
    assert not (site / "cache").exists()
    assert invoke(site, f"{site}/mine.yaml", *both).exception is None
    (image,) = Store(site / "store").images()
    root = Store(site / "store").blob_path(image.manifest.artifacts.root.sha256)
    assert root.read_text() == "root root dev signed by db.crt"


def test_a_release_image_with_a_way_in_is_said_twice(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    (site / "mine.yaml").write_text("base: debian-12-minimal\ndebug: [console-login]\nprofile: release\n")
    (site / "heir.yaml").write_text("base: ./mine.yaml\ndebug: [initrd-shell]\n")
    done = invoke(site, f"{site}/heir.yaml")
    assert isinstance(done.exception, RecipeError)
    assert str(done.exception) == (
        "heir says `debug: [console-login, initrd-shell]`, and is to be a release image: whoever has the console of a "
        "machine would be root on it; take `debug` out, build with --profile dev, or say --yes"
    )
    assert not (site / "cache").exists()
    assert invoke(site, f"{site}/mine.yaml", "--profile", "dev").exception is None
    assert invoke(site, f"{site}/mine.yaml", "--yes").exception is None
    assert len(Store(site / "store").images()) == 2


def test_an_unknown_recipe_names_those_that_there_are(site: Path) -> None:
    done = invoke(site, "debian-13")
    assert isinstance(done.exception, RecipeError)
    assert str(done.exception) == (
        "there is no recipe debian-13: shipped are debian-12-arm64, debian-12-cpu, debian-12-gpu, debian-12-minimal, "
        "debian-12-node, debian-12-node-demo, "
        "ubuntu-24.04-cpu, ubuntu-24.04-dpu, ubuntu-24.04-gpu, "
        "ubuntu-24.04-minimal, ubuntu-24.04-node, ubuntu-24.04-node-demo; "
        "a recipe of your own is the path of its file, like ./mine.yaml"
    )


def test_who_builds_an_unknown_recipe_is_told_so_by_the_status(site: Path, run: Run) -> None:
    for words in (("build", "nope"), ("build", f"{site}/nope.yaml"), ("lock", "nope")):
        ran = run("image", *words)
        assert (ran.status, ran.out) == (3, "")
        assert ran.err.splitlines()[1:] == ["Remedy: name one of those, or the file: docs/shipped-recipes.md"]


def test_faults_of_a_recipe_come_before_anything_is_done(site: Path) -> None:
    (site / "mine.yaml").write_text("base: debian-12-minimal\nbudget: 3\n")
    done = invoke(site, f"{site}/mine.yaml")
    assert isinstance(done.exception, FaultsError)
    assert str(done.exception) == f"{site}/mine.yaml:2: budget: unknown key; did you mean 'budget_mib'?"
    assert not (site / "cache").exists()


FINDINGS = (
    Finding("skew", "the kubelet is 1.36.0", "take another"),
    Finding("secrets", "/etc/key holds a private key (PEM)", "take it out of the recipe"),
)


def failing_build(*arguments: object) -> Built:
    raise GateError(FINDINGS)


def test_findings_of_gates_are_told_all_at_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", failing_build)
    done = invoke(site, "debian-12-minimal")
    assert isinstance(done.exception, GateError)
    assert str(done.exception) == (
        "this image must not be booted, and was not stored; 2 findings:\n"
        "skew: the kubelet is 1.36.0\n"
        "  take another\n"
        "secrets: /etc/key holds a private key (PEM)\n"
        "  take it out of the recipe"
    )
    assert done.stdout == ""
    assert not (site / "store").exists()


def test_findings_of_gates_for_programs(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", failing_build)
    done = invoke(site, "debian-12-minimal", "--output", "json")
    assert isinstance(done.exception, GateError)
    assert json.loads(done.stdout) == {
        "findings": [
            {"gate": "skew", "cause": "the kubelet is 1.36.0", "remedy": "take another"},
            {
                "gate": "secrets",
                "cause": "/etc/key holds a private key (PEM)",
                "remedy": "take it out of the recipe",
            },
        ]
    }


def test_without_a_key_nothing_is_built(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    done = invoke(tmp_path, "debian-12-minimal")
    assert str(done.exception) == (
        f"no public key in {tmp_path}/keys: `netboot key create` makes one; machines boot only what it signed"
    )


def test_where_only_public_keys_are_the_build_does_not_begin(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> Built:
        raise AssertionError

    monkeypatch.setattr(command, "build_image", never)
    for path in (site / "keys").glob("*.key"):
        path.unlink()
    assert "no private key to sign with" in str(invoke(site, "debian-12-minimal").exception)


def test_without_root_a_build_says_so(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    done = invoke(site, "debian-12-minimal")
    assert str(done.exception) == ("building an image needs root (owners, permissions, a chroot); run it with sudo")


def fake_second(content: str = "root") -> Any:
    """The second build of --check, in this process; the real one is in tests/tools/images/test_surroundings.py."""

    def rebuilt(request: Request, there: Surroundings, progress: Building) -> tuple[Built, Surroundings]:
        with Cache(there.files) as cache:
            built: Built = fake_build(content)(load_recipe(request.recipe, request.profile), {}, cache, progress, None)
        return built, there

    return rebuilt


def test_check_builds_twice_and_stores_nothing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    monkeypatch.setattr(command, "rebuilt", fake_second())
    monkeypatch.setattr("images.build.surroundings._FUSE", site / "none")
    done = invoke(site, "debian-12-minimal", "--check", "--profile", "release")
    assert done.exception is None
    said = done.stdout.splitlines()
    assert said[4] == "built twice: the same bytes"
    assert said[5].startswith("varied: path, host name, umask, time zone, locale, order of sets")
    assert "not varied: file order: disorderfs is not installed, or there is no /dev/fuse" in said[6:]
    assert [
        line.partition(", with another path, host name, ")[0] for line in done.stderr.splitlines() if "build" in line
    ] == [
        "first build, with what the cache has",
        "second build, from clean",
    ]
    assert not (site / "store").exists()
    assert list((site / "cache/tmp").iterdir()) == []


def test_the_second_build_writes_down_what_it_has_seen_of_all_that_is_varied(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netboot.cli.rebuild.build_image", fake_build())
    there = surroundings.other(site / "second")
    request = there.place.parent / "request.json"
    request.write_text(Request("debian-12-minimal", None, site / "keys", None, None).to_json())
    assert CliRunner().invoke(rebuild, [str(there.place)], catch_exceptions=False).exit_code == 0
    result = json.loads((there.place.parent / "result.json").read_bytes())
    assert result["seen"].keys() == there.varied.keys() | there.same.keys()


def test_check_names_what_differs(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build("one"))
    monkeypatch.setattr(command, "rebuilt", fake_second("two"))
    monkeypatch.setattr(command, "differences", lambda first, second: ["root: differs", "first in step configure:"])
    done = invoke(site, "debian-12-minimal", "--check", "--output", "json")
    assert str(done.exception) == (
        "the two builds differ: this recipe is not reproducible here; steps of the first that came from the cache: 1; "
        "with an empty --cache FOLDER both are from clean"
    )
    assert isinstance(done.exception, ImageError)
    result = json.loads(done.stdout)
    assert (result["reproducible"], result["differences"]) == (False, ["root: differs", "first in step configure:"])
    assert result["from_cache"] == 1
    assert {"umask", "locale", "path"} <= result["varied"].keys()


def test_what_the_second_build_is_told_is_independent_of_where_it_begins(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site)
    (site / "mine.yaml").write_text("base: debian-12-minimal\n")
    told = json.loads(Request("./mine.yaml", "dev", site / "keys", Path("a.key"), Path("a.crt")).to_json())
    assert told == {
        "recipe": f"{site}/mine.yaml",
        "profile": "dev",
        "keys": f"{site}/keys",
        "uki_key": f"{site}/a.key",
        "uki_cert": f"{site}/a.crt",
    }
    shipped = json.loads(Request("debian-12-minimal", None, site / "keys", None, None).to_json())
    assert (shipped["uki_key"], Path(shipped["recipe"]).name) == (None, "debian-12-minimal.yaml")
    assert Path(shipped["recipe"]).is_file()


@pytest.mark.parametrize(
    ("environment", "cache"),
    [
        ({"NETBOOT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/netboot"),
        ({"HOME": "/home/me"}, "/home/me/.cache/netboot"),
    ],
)
def test_where_the_cache_is(environment: dict[str, str], cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NETBOOT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert command.default_cache() == Path(cache)


def test_a_terminal_has_a_live_last_line_and_a_file_has_none(tmp_path: Path) -> None:
    for terminal in (True, False):
        with (tmp_path / "out").open("w+") as file:
            console = Console(file=file, force_terminal=terminal, width=60, color_system=None)
            with Building(console) as progress:
                progress.begin("bootstrap")
                progress.line("bootstrap", "Unpacking [weird] thing")
                progress.end("bootstrap", 61.26, cached=False)
            file.seek(0)
            text = file.read()
        assert "bootstrap   61.3 s\n" in text
        assert ("\x1b" in text) is terminal


def test_several_running_steps_are_shown_each_with_its_own_line(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as file:
        with Building(Console(file=file, force_terminal=True, width=60, color_system=None)) as progress:
            progress.begin("root")
            progress.begin("initrd")
            progress.line("root", "compressing")
            progress.line("initrd", "24 modules")
            progress.heading("so far")
            progress.end("initrd", 1.0, cached=False)
            progress.heading("so far")
            progress.end("root", 2.0, cached=False)
        file.seek(0)
        text = file.read().replace("\r", "")
    assert "root       compressing\n  initrd     24 modules" in text
    after = text.partition("initrd       1.0 s\n")[2]
    assert "root       compressing" in after and "24 modules" not in after


CLASSES = """
channels: [{name: stable}]
classes:
- {name: tiny, memory_gib: 0.5}
- {name: large, memory_gib: 64}
- {name: dpu, architecture: arm64, memory_gib: 0.5}
- {name: unknown}
"""


def with_classes(site: Path, text: str = CLASSES) -> tuple[str, str]:
    """The site has a configuration and an inventory: the option that names it."""
    make_site(site / "site", inventory=text)
    return "--config", str(site / "site/netboot.yaml")


def test_an_image_for_which_a_class_has_not_the_memory_is_not_stored(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    options = with_classes(site)
    done = invoke(site, "debian-12-minimal", *options)
    assert isinstance(done.exception, BudgetError)
    assert str(done.exception) == (
        "this image must not be booted, and was not stored; 1 finding:\n"
        "memory: debian-12-minimal leaves 108 of 496 MiB for work, and a quarter is 124: "
        "image 17, system 263, overlay 108 (class tiny)\n"
        "  say which classes are to boot it (`--class NAME`), declare more memory, or leave something out"
    )
    assert not (site / "store").exists()
    assert invoke(site, "debian-12-minimal", *options, "--class", "large", "--class", "unknown").exception is None


def test_a_class_whose_network_cards_have_no_driver_is_warned_of(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    drivers = frozenset({"virtio_net", "ice"})
    judged = Candidate("debian-12-minimal", "amd64", drivers=drivers)
    monkeypatch.setattr(fit, "candidate", lambda *_: judged)
    cards = (
        "- {name: hgx, nics: [{model: ConnectX-7, count: 8, speed_gbps: 400}]}\n"
        "- {name: web, nics: [{model: E810, count: 2, speed_gbps: 100}]}\n"
    )
    options = with_classes(site, f"channels: [{{name: stable}}]\nclasses:\n{cards}")
    warning = (
        "class hgx: debian-12-minimal has no driver for 8 × ConnectX-7 (mlx5_core); "
        "add `mlx5_core` to `modules` of its recipe, as the feature `server` does"
    )
    done = invoke(site, "debian-12-minimal", *options, "-o", "json")
    assert (json.loads(done.stdout)["warnings"], f"warning: {warning}\n" in done.stderr) == ([warning], True)
    done = invoke(site, "debian-12-minimal", *options, "--class", "web", "-o", "json")
    assert json.loads(done.stdout)["warnings"] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("larg", "no class is named 'larg'; did you mean 'large'?"),
        ("zzzz", "no class is named 'zzzz'; declared classes: dpu, large, tiny, unknown"),
        ("dpu", "class 'dpu' is arm64, and the image amd64: leave it out"),
    ],
)
def test_a_class_that_cannot_be_meant_is_said_before_the_work(site: Path, name: str, words: str) -> None:
    done = invoke(site, "debian-12-minimal", *with_classes(site), "--class", name)
    assert (str(done.exception), (site / "cache").exists()) == (words, False)


def test_without_a_configuration_no_class_is_known(site: Path) -> None:
    done = invoke(site, "debian-12-minimal", "--class", "large")
    assert str(done.exception) == "no class is named 'large'; declared classes: none"


def test_an_inventory_with_faults_stops_no_build_but_one_for_a_class(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "build_image", fake_build())
    options = with_classes(site, CLASSES.replace("channels", "chanels"))
    done = invoke(site, "debian-12-minimal", *options)
    assert done.exception is None
    assert done.stderr.splitlines()[0] == ("the inventory has faults (`netboot config check`): no class is looked at")
    assert isinstance(invoke(site, "debian-12-minimal", *options, "--class", "large").exception, FaultsError)
