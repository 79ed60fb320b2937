"""`netboot image revoke`, `unrevoke` and `revocations` beside a service that is away, and keys that are elsewhere."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from images.artifact.bundle import MOST_REVOKED, SiteBundle, read_bundle
from images.artifact.keyring import KeyRing
from images.artifact.signing import SigningKey, sign
from images.store import revocations
from images.store.revocations import Revocation
from images.store.store import Store
from netboot.cli import bundles
from netboot.config import Config
from tests.commands import Ran, Run
from tests.sites import add_image, make_site

CVE = ("--reason", "CVE-2026-1234", "--force-nothing-boots")
OTHER = "d" * 64


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    made = make_site(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "site")
    return made


def bundle(config: Config) -> SiteBundle:
    return read_bundle(Store(config.store).bundle()[0])


def listed(run: Run) -> list[str]:
    """What `revocations` says, spaces and moments left out."""
    return [
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", "WHEN", re.sub(" +", " ", line)).strip()
        for line in run("image", "revocations").out.splitlines()
    ]


def test_who_boots_it_cannot_be_told_so_it_has_to_be_said_that_nobody_matters(config: Config, run: Run) -> None:
    digest = add_image(config)
    away = f"cannot reach the service at {config.management.base_url}: nothing listens there"
    assert run("image", "revoke", "tiny", "--reason", "bad") == Ran(
        5,
        "",
        f"Error: who boots it cannot be told: {away}\nRemedy: is `netboot serve` running? The address is from "
        "management in netboot.yaml\nOr, whoever that is: --force-nothing-boots\n",
    )
    assert listed(run) == ["no image is revoked"]
    assert bundle(config).images_revoked == ()
    assert run("image", "revoke", digest[:8], *CVE) == Ran(
        0,
        f"image {digest[:12]} is revoked: the site bundle says so, signed now\n",
        f"warning: who boots it cannot be told: {away}\n",
    )
    assert [(each["image"], each["revoked"]) for each in run("image", "list", "-o", "json").json["images"]] == [
        (digest, True)
    ]
    assert run("image", "list").out.endswith("  revoked\n")
    assert "\nrevoked       see `netboot image revocations` " in run("image", "show", digest).out
    assert run("image", "revoke", OTHER, *CVE).status == 0  # not in the store
    assert bundle(config).images_revoked == tuple(sorted((digest, OTHER)))
    rows = {line.split(" ")[0]: line for line in listed(run)[1:]}
    assert rows == {
        digest[:12]: f"{digest[:12]} tiny WHEN in force CVE-2026-1234",
        OTHER[:12]: f"{OTHER[:12]} not here WHEN in force CVE-2026-1234",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--reason", " "), "--reason: write 1 to 500 characters"),
        (("--reason", "x" * 501), "--reason: write 1 to 500 characters"),
        (
            (*CVE, "--replace-with", "tiny"),
            "--replace-with and --force-nothing-boots exclude each other: give one of them",
        ),
        ((), "Missing option '--reason'"),
    ],
)
def test_wrong_usage_changes_nothing(config: Config, run: Run, arguments: tuple[str, ...], words: str) -> None:
    add_image(config)
    ran = run("image", "revoke", "tiny", *arguments)
    assert (ran.status, words in ran.err) == (2, True)
    assert revocations.read(config.store) == {}


def test_a_revocation_outlives_a_new_bundle_a_lost_file_and_a_damaged_bundle(config: Config, run: Run) -> None:
    digest = add_image(config)
    run("image", "revoke", digest, *CVE)
    with (config.store.parent / "netboot.yaml").open("a") as file:
        file.write("minimum_epoch: 3\n")
    assert run("config", "bundle").status == 0
    assert (bundle(config).minimum_epoch, bundle(config).images_revoked) == (3, (digest,))

    (config.store / revocations.FILE).unlink()
    assert run("config", "check").status == 0
    (config.store.parent / "netboot.yaml").write_text(
        (config.store.parent / "netboot.yaml").read_text().replace("minimum_epoch: 3", "minimum_epoch: 4")
    )
    assert run("config", "bundle").status == 0
    assert bundle(config).images_revoked == (digest,)
    assert listed(run)[1] == f"{digest[:12]} tiny not known in force not written down"

    (old,) = KeyRing(config.keys).trusted()
    assert run("key", "rotate").status == 0
    refused = run("key", "retire", old.id)
    assert (refused.status, "\n  the site bundle, which every machine verifies\n" in refused.err) == (4, True)
    assert run("key", "retire", old.id, "--force").status == 0  # nobody trusts the bundle now
    assert run("config", "bundle").status == 0
    assert bundle(config).images_revoked == (digest,)

    run("image", "revoke", digest, *CVE)
    signed = config.store / "site" / "bundle.json"
    signed.chmod(0o644)
    signed.write_text("{")
    assert run("config", "bundle").status == 0
    assert bundle(config).images_revoked == (digest,)


def test_only_unrevoke_takes_it_back(config: Config, run: Run) -> None:
    digest = add_image(config)
    run("image", "revoke", digest, *CVE)
    run("image", "revoke", OTHER, *CVE)
    for text, count in ((digest[:7], 0), ("f" * 8, 0)):
        assert run("image", "unrevoke", text) == Ran(
            3, "", f"Error: {count} revoked images begin with {text}: see `netboot image revocations`\n"
        )
    before = bundle(config)
    assert run("image", "unrevoke", digest[:8], "--dry-run") == Ran(
        0, f"image {digest[:12]} would be revoked no more; nothing was changed\n", ""
    )
    assert bundle(config) == before
    assert run("image", "unrevoke", digest[:8]) == Ran(
        0, f"image {digest[:12]} is revoked no more: the site bundle says so, signed now\n", ""
    )
    assert bundle(config).images_revoked == (OTHER,)
    assert bundle(config).issued > before.issued
    assert run("config", "check").status == 0


def test_where_the_key_is_elsewhere_the_bundle_goes_there_and_back(config: Config, tmp_path: Path, run: Run) -> None:
    digest = add_image(config)
    vault = tmp_path / "vault"
    vault.mkdir()
    for path in (*config.keys.glob("*.key"), config.keys / "active"):
        path.rename(vault / path.name)
    for path in config.keys.glob("*.pub"):
        (vault / path.name).write_bytes(path.read_bytes())
    stale = config.site_bundle(bundle(config).issued - 1).to_bytes()  # written before, signed now
    Path("stale.json").write_bytes(stale)
    Path("stale.sig").write_bytes(KeyRing(vault).signing_key().sign(stale))

    ran = run("image", "revoke", digest, *CVE)
    assert (ran.status, "Where the key is: `netboot config bundle --sign test-bundle.json`" in ran.err) == (1, True)
    assert listed(run)[1].endswith("WHEN not signed: run `netboot config bundle` CVE-2026-1234")
    said = f"image {digest[:12]} is to be revoked, and the bundle does not do it"
    assert f"{said}; run `netboot config bundle`" in run("config", "check").err
    assert run("config", "bundle", "--signature", "stale.sig").err == (
        f"Error: that bundle is not of this configuration: {said}\nRemedy: write it anew: `netboot config bundle`\n"
    )
    run("config", "bundle", "--keys", vault, "--sign", "test-bundle.json")
    assert run("config", "bundle", "--signature", "test-bundle.sig").status == 0
    assert bundle(config).images_revoked == (digest,)

    ran = run("image", "unrevoke", digest)
    assert (ran.status, bundle(config).images_revoked) == (1, (digest,))
    assert run("config", "bundle", "--signature", "stale.sig").err == (
        f"Error: that bundle was written at {read_bundle(stale).issued}, and the one in force at "
        f"{bundle(config).issued}: write it anew with `netboot config bundle`\n"
    )
    run("config", "bundle", "--keys", vault, "--sign", "test-bundle.json")
    assert run("config", "bundle", "--signature", "test-bundle.sig").status == 0
    assert bundle(config).images_revoked == ()


def test_two_who_revoke_at_once_lose_nothing(config: Config, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second signs while the first does: the first is told to begin again, and has both then."""

    def interrupted(data: bytes, keys: Sequence[SigningKey]) -> bytes:
        monkeypatch.setattr(bundles, "sign", sign)
        assert run("image", "revoke", OTHER, *CVE).status == 0
        return sign(data, keys)

    monkeypatch.setattr(bundles, "sign", interrupted)
    ran = run("image", "revoke", "a" * 64, *CVE)
    assert (ran.status, bundle(config).images_revoked) == (5, ("a" * 64, OTHER))
    assert ran.err.endswith("Error: another site bundle was signed meanwhile: give the command again\n")
    assert run("image", "revoke", "a" * 64, *CVE).status == 0
    assert bundle(config).images_revoked == ("a" * 64, OTHER)


def test_a_full_bundle_and_a_damaged_file_are_said(config: Config, run: Run) -> None:
    many = {f"{n:064x}": Revocation(reason="x", at=1) for n in range(MOST_REVOKED)}
    revocations.write(Store(config.store), many)
    assert run("image", "revoke", OTHER, *CVE).err == (
        "Error: 512 images are revoked, and a bundle has room for no more: raise minimum_epoch above theirs, then "
        "`netboot image unrevoke` them\n"
    )
    assert run("image", "revoke", f"{1:064x}", *CVE).status == 0  # again
    assert len(bundle(config).images_revoked) == MOST_REVOKED
    path = config.store / revocations.FILE
    path.write_text(json.dumps({"x": {"reason": "x", "at": 1}}))
    ran = run("config", "bundle")
    assert ran.status == 1
    assert ran.err.startswith(f"Error: {path} is damaged (x.[key]: must be a SHA-256 digest: 64 lower-case hexadecimal")
    assert ran.err.endswith("the site bundle still names the images, and nothing says why\n")
