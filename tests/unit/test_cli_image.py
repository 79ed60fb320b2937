"""`netboot image` and `netboot key`, as they are called: whole outputs, exit statuses, JSON."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from images.artifact.keyring import KeyRing
from images.artifact.signing import read_public_key
from images.store.store import Store
from images.values.digests import canonical
from netboot.cli.commands import cli
from netboot.cli.output import progress
from netboot.clock import moment_ms
from tests.commands import Ran, Run
from tests.unit.images import samples
from tests.unit.images.samples import KEY, add

IN_NO_AUDIT = "it is done, and in no audit: no configuration here has this folder\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, and the key of the samples, trusted."""
    (tmp_path / "netboot.yaml").write_text("site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / f"{KEY.public.id}.pub").write_bytes(KEY.public.to_bytes())
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def squeezed(text: str) -> list[str]:
    """Lines with runs of spaces as one."""
    return [re.sub(" +", " ", line).strip() for line in text.splitlines()]


def test_a_list_names_each_image_and_who_needs_it(site: Path, run: Run) -> None:
    build = "`netboot image build debian-12-minimal`"
    empty = f"no images yet: {build} makes one for virtual machines, `ubuntu-24.04-gpu` one for servers\n"
    assert run("image", "list") == Ran(0, empty, "")
    assert run("image", "list", "-o", "json").json == {"images": []}
    store = Store(site / "store")
    one, two = add(store, site / "parts", "one"), add(store, site / "parts", "two")
    store.set_channel("stable", two)
    lines = squeezed(run("image", "list").out)
    assert lines[0] == "image recipe kernel size added in use"
    added = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", "WHEN", line).strip() for line in lines[1:]]
    assert added == [
        f"{two[:12]} sample 6.1.0-1-amd64 0.0 MiB WHEN channel stable points to it",
        f"{one[:12]} sample 6.1.0-1-amd64 0.0 MiB WHEN",
    ]
    assert [line.split()[0] for line in run("image", "list", "-o", "wide").out.splitlines()[1:]] == [two, one]
    found = run("image", "list", "-o", "json").json["images"]
    assert [(item["image"], item["in_use"]) for item in found] == [(two, ["channel stable points to it"]), (one, [])]


def test_a_damaged_image_is_listed_as_damaged(site: Path, run: Run) -> None:
    digest = add(Store(site / "store"), site / "parts", "one")
    manifest = site / "store" / "images" / digest / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_bytes(b"{}")
    assert squeezed(run("image", "list").out)[1] == f"{digest[:12]} damaged see `netboot image verify {digest[:12]}`"
    assert run("image", "list", "-o", "json").json == {"images": [{"image": digest, "damaged": True}]}
    assert run("image", "show", digest[:12]) == Ran(
        1, "", f"Error: the manifest of image {digest[:12]} is not what its digest says: remove the image\n"
    )
    ran = run("image", "verify", digest[:12], "-o", "json")
    assert (ran.status, [item["part"] for item in ran.json["findings"]]) == (1, ["manifest"])


def test_an_image_is_shown_whole(site: Path, run: Run) -> None:
    store = Store(site / "store")
    digest = add(store, site / "parts", "one")
    store.set_channel("stable", digest)
    parts = store.manifest(digest).artifacts
    assert squeezed(run("image", "show", "sample").out)[1:] == [
        f"image {digest}",
        "recipe sample",
        "distribution debian bookworm amd64",
        "kernel 6.1.0-1-amd64",
        "arguments console=ttyS0",
        "epoch 0",
        f"signed by key {KEY.public.id}, trusted here",
        f"kernel 0.0 MiB {parts.kernel.sha256}",
        f"initrd 0.0 MiB {parts.initrd.sha256}",
        f"root 0.0 MiB {parts.root.sha256}",
        f"packages 0.0 MiB {parts.packages.sha256}",
        "size 0.0 MiB in all, compressed",
        "memory 512 MiB at least, in the machine",
        "in use channel stable points to it",
    ]
    value = run("image", "show", "sample", "-o", "json").json
    assert value.pop("manifest")["artifacts"]["kernel"]["sha256"] == parts.kernel.sha256
    assert moment_ms(value.pop("added_at")) > 1_700_000_000_000
    assert value == {
        "image": digest,
        "size": sum(part.size for _, part in parts),
        "signer": KEY.public.id,
        "verified": True,
        "problem": None,
        "channels": ["stable"],
        "in_use": ["channel stable points to it"],
        "missing": {},
        "drivers": None,
        "signatures": [{"key": KEY.public.id, "verdict": "good"}],
    }


def test_an_image_of_a_stranger_is_shown_as_not_verified(site: Path, run: Run) -> None:
    digest = add(Store(site / "store"), site / "parts", "one")
    (site / "keys" / f"{KEY.public.id}.pub").unlink()
    why = f"signed by key {KEY.public.id}, which is not trusted here (see `netboot key list`)"
    assert f"signed by NOT verified: {why}" in squeezed(run("image", "show", digest).out)
    value = run("image", "show", digest, "-o", "json").json
    assert (value["verified"], value["signer"], value["problem"]) == (False, None, why)


def test_verify_says_so_or_names_the_part_and_fails(site: Path, run: Run) -> None:
    store = Store(site / "store")
    digest = add(store, site / "parts", "one")
    assert run("image", "verify", "sample") == Ran(0, f"image {digest[:12]} is what was signed, every byte\n", "")
    assert run("image", "verify", "sample", "-o", "json").json == {"image": digest, "findings": []}
    blob = store.blob_path(store.manifest(digest).artifacts.root.sha256)
    blob.chmod(0o644)
    blob.write_bytes(b"Root one")
    ran = run("image", "verify", "sample")
    assert (ran.status, ran.err) == (1, "")
    problem = (
        f"blob {blob.name[:12]} is not what its digest says: damaged in chunk 0 of 1 (counted from 0; from byte 0 on)"
    )
    remedy = "build or fetch the image again: a good blob takes its place"
    assert squeezed(ran.out) == ["part problem remedy", f"root {problem} {remedy}"]
    (finding,) = run("image", "verify", "sample", "-o", "json").json["findings"]
    assert (finding["part"], finding["chunks"]) == ("root", [0])
    blob.unlink()
    assert run("image", "show", "sample", "-o", "json").json["missing"] == {"root": f"blob {blob.name[:12]} is missing"}


def test_diff_is_for_people_and_programs(site: Path, run: Run) -> None:
    store = Store(site / "store")
    one, two = add(store, site / "parts", "one"), add(store, site / "parts", "two", name="other")
    assert squeezed(run("image", "diff", "sample", "other").out)[1:] == [
        "name sample other",
        f"recipe {store.manifest(one).recipe} {store.manifest(two).recipe}",
        "initrd 10 bytes 10 bytes",
        "root 8 bytes 8 bytes",
        "packages 50 bytes 50 bytes",
        "packages: 1",
        "bash:amd64 one two",
    ]
    value = run("image", "diff", one, two, "-o", "json").json
    assert (value["old"], value["new"], value["changed"]) == (one, two, {"bash:amd64": ["one", "two"]})
    assert run("image", "diff", "sample", one[:8]) == Ran(0, "nothing differs\n", "")


def documented(site: Path, name: str, files: list[dict[str, object]], config: str) -> str:
    """An image with a listing and a kernel configuration; its digest."""
    parts = samples.parts(site / "parts" / name, name)
    parts |= {kind: site / "parts" / name / kind for kind in ("files", "config")}
    parts["files"].write_bytes(b"".join(map(canonical, files)))
    parts["config"].write_text(config)
    data = samples.manifest(parts, name).to_bytes()
    return Store(site / "store").add_image(data, KEY.sign(data), parts)


def entry(path: str, **more: object) -> dict[str, object]:
    return {"path": path, "kind": "file", "mode": "0644", "uid": 0, "gid": 0, "size": 1, "sha256": "a" * 64, **more}


OLD = [
    entry("/a"),
    entry("/b", mode="0755"),
    entry("/lib/modules/6.1/kernel/x.ko.xz"),
    *(entry(f"/usr/{number:02}") for number in range(25)),
]
NEW = [entry("/a", size=2, sha256="b" * 64), entry("/b"), entry("/lib/modules/6.2/kernel/y-z.ko")]


def test_diff_shows_files_modules_and_kernel_configuration(site: Path, run: Run) -> None:
    one = documented(site, "old", OLD, "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=n\n")
    two = documented(site, "new", NEW, 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D="x"\n')
    shown = squeezed(run("image", "diff", one, two).out)
    assert shown[shown.index("kernel config: 2") :] == [
        "kernel config: 2",
        "CONFIG_B m n",
        'CONFIG_D n "x"',
        "modules: 2",
        "y_z added",
        "x removed",
        "files: 29",
        f"/a size 1, content {'a' * 12} size 2, content {'b' * 12}",
        "/b mode 0755 mode 0644",
        "/lib/modules/6.1/kernel/x.ko.xz file 0644, 1 bytes",
        "/lib/modules/6.2/kernel/y-z.ko file 0644, 1 bytes",
        *(f"/usr/{number:02} file 0644, 1 bytes" for number in range(16)),
        "... and 9 more (--all)",
    ]
    whole = squeezed(run("image", "diff", one, two, "--all").out)
    assert whole[-1] == "/usr/24 file 0644, 1 bytes"
    value = run("image", "diff", one, two, "-o", "json").json
    assert len(value["files"]) == 29
    assert value["files"][1] == {
        "path": "/b",
        "change": "changed",
        "aspects": ["mode"],
        "old": OLD[1],
        "new": NEW[1],
    }
    assert value["modules"] == {"added": ["y_z"], "removed": ["x"]}
    assert value["kernel_config"] == {"CONFIG_B": ["m", "n"], "CONFIG_D": ["n", '"x"']}
    assert value["unknown"] == []


def test_diff_says_what_it_cannot_tell_of_older_images(site: Path, run: Run) -> None:
    store = Store(site / "store")
    old, older = add(store, site / "parts", "one"), add(store, site / "parts", "two")
    new = documented(site, "new", NEW, "")
    words = [
        f"image {old[:12]} has no listing of files: files and modules are not compared; build it again for that",
        f"image {old[:12]} has no kernel configuration: it is not compared; build it again for that",
    ]
    assert run("image", "diff", old, new).err.splitlines() == words
    value = run("image", "diff", old, new, "-o", "json").json
    assert (value["files"], value["modules"], value["kernel_config"], value["unknown"]) == (None, None, None, words)
    assert run("image", "diff", old, older).err.splitlines() == [
        "neither image has a listing of files: files and modules are not compared; build them again for that",
        "neither image has a kernel configuration: it is not compared; build them again for that",
    ]


def test_a_document_is_printed_as_it_was_signed(site: Path, run: Run) -> None:
    digest = documented(site, "new", NEW, "CONFIG_A=y\n")
    store = Store(site / "store")
    assert run("image", "cat", "new", "config") == Ran(0, "CONFIG_A=y\n", "")
    assert run("image", "cat", "new", "manifest").out.encode() == store.manifest_bytes(digest)
    assert run("image", "cat", "new", "sbom") == Ran(
        3, "", f"Error: image {digest[:12]} has no sbom: the netboot that built it made none; build it again\n"
    )
    config = store.manifest(digest).artifacts.config
    assert config
    blob = store.blob_path(config.sha256)
    blob.chmod(0o644)
    blob.write_text("CONFIG_A=n\n")
    assert run("image", "cat", "new", "config") == Ran(
        1, "", f"Error: config of image {digest[:12]} is damaged; see `netboot image verify {digest[:12]}`\n"
    )


def test_an_image_gets_the_new_keys_signature_and_outlives_the_old_key(site: Path, run: Run) -> None:
    store, ring = Store(site / "store"), KeyRing(site / "keys")
    digest = add(store, site / "parts", "one")
    new = ring.rotate().id
    old = KEY.public.id
    assert run("image", "sign", "sample") == Ran(0, f"image {digest[:12]} is signed by key {old} and {new}\n", "")
    assert run("image", "sign", "sample").out == (
        f"nothing to do: image {digest[:12]} is signed by key {old} and {new}\n"
    )
    ring.retire(old)
    shown = squeezed(run("image", "show", "sample").out)
    assert [line for line in shown if line.startswith("signed by")] == [
        f"signed by key {old}, not trusted here",
        f"signed by key {new}, trusted here",
    ]
    assert run("image", "verify", "sample").status == 0


def test_an_image_that_nobody_trusted_signed_is_not_signed_again(site: Path, run: Run) -> None:
    store, ring = Store(site / "store"), KeyRing(site / "keys")
    digest = add(store, site / "parts", "one")
    ring.rotate()
    ring.retire(KEY.public.id)
    before = store.signature(digest)
    assert run("image", "sign", "sample").err == (
        f"Error: signed by key {KEY.public.id}, which is not trusted here (see `netboot key list`)\n"
    )
    assert store.signature(digest) == before


def test_a_bad_signature_beside_a_good_one_is_found_and_replaced(site: Path, run: Run) -> None:
    store, ring = Store(site / "store"), KeyRing(site / "keys")
    digest = add(store, site / "parts", "one")
    new = ring.rotate().id
    store.add_signature(digest, ring.signing_key().sign(b"another"))
    done = run("image", "verify", "sample", "-o", "json")
    assert done.status == 1
    assert done.json["findings"] == [
        {
            "part": "manifest",
            "problem": f"the signature of key {new} does not fit, and another key's does",
            "remedy": "run `netboot image sign` where that key signs: a good signature takes its place",
            "chunks": [],
        }
    ]
    states = [
        (item["key"], item["verdict"]) for item in run("image", "show", "sample", "-o", "json").json["signatures"]
    ]
    assert states == [(KEY.public.id, "good"), (new, "bad")]
    assert run("image", "sign", "sample").status == 0
    assert run("image", "verify", "sample").status == 0


def test_gc_and_rm(site: Path, run: Run) -> None:
    store = Store(site / "store")
    one, two = add(store, site / "parts", "one"), add(store, site / "parts", "two")
    store.set_channel("stable", two)
    assert run("image", "rm", two) == Ran(
        4, "", f"Error: image {two[:12]} is in use: channel stable points to it\nRemedy: see `netboot channel list`\n"
    )
    for blob in (site / "store" / "blobs").iterdir():
        os.utime(blob, (0, 0))
    assert squeezed(run("image", "gc").out)[1:] == [f"{one[:12]} unneeded; may go in 3600 s"]
    assert squeezed(run("image", "gc", "--grace", "0", "--dry-run").out)[1:] == [
        f"{one[:12]} would be removed",
        "3 blobs would be removed, 0.0 MiB",
    ]
    assert run("image", "rm", one[:10], "-o", "json").json == {"removed": one}
    done = run("image", "gc", "-o", "json").json
    assert (done["removed"], done["waiting"], done["blobs"]) == ([], {}, 3)
    assert run("image", "gc") == Ran(0, "nothing to remove\n", "")
    assert store.digests() == (two,)


def test_the_store_can_be_named_without_a_configuration(site: Path, run: Run) -> None:
    digest = add(Store(site / "elsewhere"), site / "parts", "one")
    (site / "netboot.yaml").unlink()
    assert run("image", "list", "--store", "elsewhere", "-o", "json").json["images"][0]["image"] == digest
    assert run("image", "show", digest, "--store", "elsewhere", "--keys", "keys").status == 0
    assert run("image", "list") == Ran(
        3,
        "",
        "Error: no configuration at netboot.yaml: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
        "or make a new site with `netboot init DIR`\n",
    )


INVENTORY = """\
channels: [{name: stable}]
profiles: [{name: compute, channel: stable}]
machines:
  - {name: gpu-001, match: {serial: S1}, profile: compute}
  - {name: gpu-002, match: {serial: S2}, profile: compute, enabled: false}
"""


def test_a_key_whose_end_ends_boots_is_retired_by_force_alone(site: Path, run: Run) -> None:
    store, ring = Store(site / "store"), KeyRing(site / "keys")
    digest, other = add(store, site / "parts", "one"), add(store, site / "parts", "two")
    store.set_channel("stable", digest)
    store.set_references("boots", frozenset({other}))
    (site / "inventory").mkdir()
    (site / "inventory/site.yaml").write_text(INVENTORY)
    ring.rotate()
    old = KEY.public.id
    lines = (
        f"  image {digest[:12]} sample: channel stable points to it; boots of gpu-001 end\n"
        f"  image {other[:12]} sample: boots refer to it\n"
    )
    for more in ((), ("--dry-run",)):
        assert run("key", "retire", old, *more) == Ran(
            4,
            "",
            f"Error: key {old} alone signed:\n{lines}Remedy: sign these by the new key first "
            "(`netboot image sign IMAGE`, `netboot config bundle`), or say --force\n",
        )
    assert len(ring.trusted()) == 2
    tried = run("key", "retire", old, "--force", "--dry-run", "-o", "json").json
    assert (tried["retired"], tried["dry_run"], tried["ended"][0]["machines"]) == (old, True, ["gpu-001"])
    assert len(ring.trusted()) == 2
    done = run("key", "retire", old, "--force")
    assert (done.status, done.err) == (0, "")
    assert done.out == (
        f"key {old} is not trusted any more; `netboot key restore {old}` takes that back. It alone signed:\n{lines}"
    )
    assert len(ring.trusted()) == 1
    assert run("key", "restore", old) == Ran(0, f"key {old} is trusted again; the service takes it by itself\n", "")
    assert len(ring.trusted()) == 2
    assert run("key", "restore", old).err == f"Error: no retired key {old} in keys (see `netboot key list`)\n".replace(
        " keys ", f" {site}/keys "
    )
    run("image", "sign", "sample")
    for image in (digest, other):
        run("image", "sign", image)
    assert run("key", "retire", old, "-o", "json").json == {"retired": old}


def test_whose_boots_end_cannot_be_told_of_an_inventory_with_faults(site: Path, run: Run) -> None:
    """What it pins is nowhere else: no service ran here that could have moved a channel of the store."""
    store, ring = Store(site / "store"), KeyRing(site / "keys")
    digest = add(store, site / "parts", "one")
    (site / "inventory").mkdir()
    file = site / "inventory/site.yaml"
    pinned = INVENTORY.replace("{name: stable}", f"{{name: stable, image: {digest}}}")
    file.write_text(pinned.replace("profile: compute, enabled", "profile: nothing, enabeld"))
    ring.rotate()
    old = KEY.public.id
    fault = "machines[1].enabeld: unknown key; did you mean 'enabled'?"
    why = f"the inventory has faults: {file}:5: {fault} (and 1 more)"
    for more in ((), ("--dry-run",)):
        assert run("key", "retire", old, *more) == Ran(
            5,
            "",
            f"Error: cannot tell whose boots end with key {old}: {why}\n"
            "Remedy: `netboot config check` lists the faults: correct them first, or say --force\n",
        )
    store.set_channel("spare", digest)
    known = f"; as far as is known, it alone signed:\n  image {digest[:12]} sample: channel spare points to it\n"
    assert f"{why}{known}Remedy" in run("key", "retire", old).err
    assert len(ring.trusted()) == 2
    done = run("key", "retire", old, "--force")
    assert (done.status, done.err) == (0, f"cannot tell whose boots end by that: {why}\n")
    assert f"It alone signed:\n  image {digest[:12]} sample: channel spare points to it\n" in done.out
    run("key", "restore", old)
    file.write_text(pinned)
    refused = run("key", "retire", old)
    pins = "channel spare points to it, channel stable points to it; boots of gpu-001 end"
    assert (refused.status, pins in refused.err) == (4, True)


def test_where_keys_alone_are_kept_it_is_said_that_nobody_can_tell(site: Path, run: Run) -> None:
    ring = KeyRing(site / "keys")
    ring.rotate()
    (site / "netboot.yaml").unlink()
    for words in (
        ("--keys", "keys"),
        ("--keys", "keys", "--dry-run"),
    ):
        refused = run("key", "retire", KEY.public.id, *words)
        assert refused.status == 4
        assert "whose boots that ends cannot be judged: no configuration at " in refused.err
    assert len(ring.trusted()) == 2
    done = run("key", "retire", KEY.public.id, "--keys", "keys", "--force")
    assert (done.status, done.out) == (0, f"key {KEY.public.id} is not trusted any more\n")
    assert done.err.startswith("not judged whose boots that ends: no configuration at netboot.yaml: ")


def test_keys_are_created_rotated_exported_and_retired(site: Path, run: Run) -> None:
    ring = KeyRing(site / "new")
    (site / "inventory").mkdir()
    (site / "inventory/site.yaml").write_text("machines: []\n")
    absent = "Error: there is no new\nRemedy: name a folder that is there with --keys\n"
    assert run("key", "list", "--keys", "new") == Ran(3, "", absent)
    ring.folder.mkdir()
    assert run("key", "list", "--keys", "new") == Ran(0, "no keys yet: `netboot key create` makes one\n", "")
    first = run("key", "create", "--keys", "new", "-o", "json").json
    assert (first["active"], first["private"], first["trusted"]) == (True, True, True)
    assert run("key", "create", "--keys", "new").err == (
        "Error: new has an active key already; `netboot key rotate` makes a new one\n"
    )
    second = run("key", "rotate", "--keys", "new", "-o", "json").json
    assert ring.signing_key().public.id == second["id"]
    assert run("key", "retire", second["id"], "--keys", "new").err == (
        f"Error: key {second['id']} signs; run `netboot key rotate` before you retire it\n"
    )
    assert run("key", "retire", first["id"], "--keys", "new") == Ran(
        0, f"key {first['id']} is not trusted any more\n", IN_NO_AUDIT
    )
    (site / "new" / f"{second['id']}.key").unlink()
    states = {line.split()[0]: line for line in squeezed(run("key", "list", "--keys", "new").out)[1:]}
    assert states[first["id"]].startswith(f"{first['id']} retired 2")
    assert states[second["id"]].startswith(f"{second['id']} signs, trusted, public half only 2")
    out = run("key", "export", second["id"], "--keys", "new").out
    assert read_public_key(out.encode()).id == second["id"]
    assert run("key", "export", second["id"], "--keys", "new", "-o", "json").json == {
        "id": second["id"],
        "public_key": out,
    }
    for wrong in ("../secrets/x", "0" * 16, ""):
        assert run("key", "export", wrong, "--keys", "new").err == (
            f"Error: no key {wrong} in new (see `netboot key list`)\n"
        )


def test_what_is_tried_changes_no_key_and_no_image(site: Path, run: Run) -> None:
    digest, ring = add(Store(site / "store"), site / "parts", "one"), KeyRing(site / "keys")
    assert run("image", "rm", digest, "--dry-run") == Ran(0, f"image {digest[:12]} would be removed\n", "")
    assert list(Store(site / "store").digests()) == [digest]
    ring.rotate()
    before = ring.infos()
    signs = next(info.id for info in before if info.active)
    assert run("key", "rotate", "--dry-run", "--keys", "keys") == Ran(
        0,
        f"a new key in {ring.folder.name} would sign from then on, and key {signs} would stay trusted\n",
        "",
    )
    assert ring.infos() == before
    ring.retire(KEY.public.id)
    retired = ring.infos()
    assert run("key", "restore", KEY.public.id, "--dry-run", "--keys", "keys") == Ran(
        0, f"key {KEY.public.id} would be trusted again\n", ""
    )
    assert ring.infos() == retired
    assert run("key", "restore", "0" * 16, "--dry-run", "--keys", "keys").status == 3
    Store(site / "store").set_channel("stable", digest)
    assert run("image", "rm", digest, "--dry-run").status == 4


def test_a_private_key_is_in_no_output(site: Path, run: Run) -> None:
    said = [
        run("key", name, "--keys", "new", "-o", form) for name in ("create", "rotate", "list") for form in ("json",)
    ]
    said += [run("key", "rotate", "--keys", "new"), run("key", "list", "--keys", "new")]
    secrets = [path.read_text().splitlines()[1] for path in (site / "new").glob("*.key")]
    assert len(secrets) == 3
    assert not any(secret in ran.out + ran.err for ran in said for secret in secrets)


def commands(name: str) -> list[tuple[str, click.Command]]:
    context = click.Context(cli)
    group = cli.get_command(context, name)
    assert isinstance(group, click.Group)
    return list(below(name, group))


def below(name: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for sub, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from below(f"{name} {sub}", command)
        else:
            yield f"{name} {sub}", command


@pytest.mark.parametrize(("name", "command"), [*commands("image"), *commands("key")])
def test_every_command_teaches_by_example_and_speaks_json(name: str, command: click.Command) -> None:
    assert f"netboot {name}" in (command.help or "")
    assert any("--output" in parameter.opts for parameter in command.params)


def test_a_bar_is_shown_only_on_a_terminal_and_only_when_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for terminal, after, shown in ((False, 0.0, False), (True, 60.0, False), (True, 0.0, True)):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress("verifying", 10, after=after) as advance:
            advance(5)
            advance(5)
        assert ("verifying" in capsys.readouterr().err) is shown
