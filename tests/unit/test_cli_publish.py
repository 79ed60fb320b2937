"""`netboot image export` and `import`, and what the commands for registries refuse before they ask anybody."""

from pathlib import Path

import pytest

from images.artifact.keyring import KeyRing
from images.store.store import Store
from netboot.config import Config
from tests.commands import Run, caller
from tests.sites import add_image, make_site


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return caller(capsys)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    config = make_site(tmp_path / "site")
    monkeypatch.setenv("NETBOOT_CONFIG", str(tmp_path / "site" / "netboot.yaml"))
    return config


def test_out_into_a_folder_and_into_another_store(run: Run, site: Config, tmp_path: Path) -> None:
    digests = {add_image(site), add_image(site, salt="two")}
    folder, other = tmp_path / "srv", tmp_path / "other"
    size = sum(image.size for image in Store(site.store).images())
    written = [run("image", "export", digest, folder, "--output", "json").json for digest in digests]
    assert sum(one["written"] for one in written) == size
    assert [one["folder"] for one in written] == [str(folder)] * 2
    digest = next(iter(digests))
    assert run("image", "export", digest, folder).out == f"image {digest[:12]} is in {folder}; 0.0 MiB written\n"
    assert run("image", "export", digest, folder, "--output", "json").json["written"] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["blobs", "images"]
    assert {path.name for path in (folder / "images").iterdir()} == digests

    done = run("image", "import", folder, "--store", other, "--output", "json").json
    key = KeyRing(site.keys).trusted()[0].id
    assert {(one["image"], one["signer"], one["from"]) for one in done["images"]} == {
        (one, key, str(folder)) for one in digests
    }
    assert set(Store(other).digests()) == digests
    assert list((other / "incoming").iterdir()) == []


def test_a_damaged_file_of_the_folder_is_written_again(run: Run, site: Config, tmp_path: Path) -> None:
    digest, folder = add_image(site), tmp_path / "srv"
    run("image", "export", digest, folder)
    root = Store(site.store).manifest(digest).artifacts.root
    (folder / "blobs" / root.sha256).write_bytes(b"half")
    again = "push or export the image there again, from a store where `netboot image verify` finds nothing"
    said = f"root (blob {root.sha256[:12]}) of {folder} is damaged: it has 4 bytes there, {root.size} were signed"
    assert run("image", "import", folder, "--store", tmp_path / "other").err == f"Error: {said}\nRemedy: {again}\n"
    assert Store(tmp_path / "other").digests() == ()
    assert run("image", "export", digest, folder, "--output", "json").json["written"] == root.size
    assert run("image", "import", folder, "--store", tmp_path / "other").status == 0


def test_an_image_that_is_damaged_here_is_not_published(run: Run, site: Config, tmp_path: Path) -> None:
    digest = add_image(site)
    kernel = Store(site.store).manifest(digest).artifacts.kernel.sha256
    Store(site.store).blob_path(kernel).unlink()
    for command in (("export", digest, tmp_path / "srv"), ("push", digest, "localhost:1/images")):
        said = f"blob {kernel[:12]} is missing; build or fetch the image again: a good blob takes its place"
        assert run("image", *command) == (1, "", f"Error: kernel: {said}\n")
    assert not (tmp_path / "srv").exists()


def test_a_folder_without_images(run: Run, site: Config, tmp_path: Path) -> None:
    assert run("image", "import", tmp_path).err == (
        f"Error: {tmp_path} has no images: `netboot image export IMAGE {tmp_path}` puts one there\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (
            ("push", "tiny", "localhost/images@sha256:" + "ab" * 32),
            2,
            "Error: a push names a tag: write REGISTRY/REPOSITORY:TAG, for the digest follows from what is pushed\n",
        ),
        (("pull", "http://localhost/v1"), 2, "names no image: give the whole URL, which ends in /images/DIGEST\n"),
        (
            ("pull", "http://localhost/v1/images/" + "ab" * 32, "--username", "me"),
            2,
            "Error: a plain origin takes no login: leave it out, what it serves is signed, and no secret\n",
        ),
        (
            ("promote", "tiny", "localhost/images@sha256:" + "ab" * 32),
            2,
            "Error: what is moved is a tag: write REGISTRY/REPOSITORY:TAG\n",
        ),
        (
            ("promote", "one.example/images:a", "two.example/images:a"),
            2,
            "two.example/images:a are in two registries: pull from the one and push to the other\n",
        ),
        (
            ("pull", "registry.example/images", "--authority", "/nowhere.pem"),
            3,
            "Error: there is no /nowhere.pem\nRemedy: name a file that is there with --authority\n",
        ),
        (
            ("pull", "registry.example/images", "--credentials", "/nowhere.json"),
            3,
            "Error: there is no /nowhere.json\nRemedy: name a file that is there with --credentials\n",
        ),
    ],
)
def test_what_is_refused_at_once(run: Run, site: Config, arguments: tuple[str, ...], status: int, words: str) -> None:
    add_image(site)
    done = run("image", *arguments)
    assert (done.status, done.out) == (status, "")
    assert done.err.endswith(words)


def test_no_password_on_standard_input(run: Run, site: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/null").open() as empty:
        monkeypatch.setattr("sys.stdin", empty)
        done = run("image", "pull", "registry.example/images", "--username", "me")
    assert done.err == "Error: no password for 'me' on standard input: pipe it in, on one line\n"


def test_a_site_that_is_missing_is_said_before_a_login_is_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("image", "pull", "registry.invalid/images:stable", "--username", "ops")
    assert (done.status, done.out) == (3, "")
    assert done.err == (
        "Error: no configuration at netboot.yaml: change into the folder of a site, give --config, "
        "set NETBOOT_CONFIG, or make a new site with `netboot init DIR`\n"
    )
