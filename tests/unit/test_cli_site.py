"""`netboot init` and `netboot config`: a site from nothing, and everything that can be wrong with it."""

import json
import os
import re
import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from images.artifact.keyring import KeyRing
from images.artifact.signing import signers_of, verify
from images.store.check import check_bundle
from images.store.store import Store
from netboot.cli import paths
from netboot.cli.authority import new_authority, new_certificate
from netboot.cli.diagnosis import Diagnosis
from netboot.cli.doctor import diagnose
from netboot.config import load_config
from netboot.machines.inventory import load_inventory
from netboot.stores import access_tokens
from tests.commands import Ran, Run

URL = "http://192.0.2.1:8080"
AS_WHOM = "run this as the service's account, or give that the folder"


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert run("init", tmp_path / "site", "--url", URL, "--site", "lab").status == 0
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


ELSEWHERE = "of one elsewhere ask there, with its file"


def test_a_new_site_has_no_faults(site: Path, run: Run) -> None:
    untold = f"cannot tell whether a service goes by it: none runs on this host with data {site}/data: {ELSEWHERE}"
    said = f"netboot.yaml: no faults; 0 machines, 1 profile, 1 channel\n{untold}\n"
    assert run("config", "check") == Ran(0, said, "")
    config = load_config(site / "netboot.yaml")
    assert (config.site, config.provisioning.url) == ("lab", URL)
    assert [profile.name for profile in load_inventory(config.inventory).profiles] == ["default"]


def test_what_is_secret_is_for_its_owner_alone(site: Path) -> None:
    private = {path for path in site.rglob("*") if path.is_file() and stat.S_IMODE(path.stat().st_mode) == 0o600}
    (key,) = site.glob("keys/*.key")
    assert private == {key, site / "secrets/operator.token", site / "secrets/access.json", site / "tls/ca.key"}
    assert stat.S_IMODE((site / "secrets").stat().st_mode) == 0o700
    assert len((site / "secrets/operator.token").read_text().strip()) >= 32
    assert (site / "secrets/operator.token").read_text().strip() not in (site / "secrets/access.json").read_text()
    ignored = (site / ".gitignore").read_text().splitlines()
    assert {"keys/*.key", "secrets/", "tls/*.key", "data/", "store/", "restored-objects/"} <= set(ignored)


def test_the_bundle_is_signed_by_the_sites_key(site: Path) -> None:
    data, signature = Store(site / "store").bundle()
    verify(data, signature, KeyRing(site / "keys").trusted())
    bundle = SiteBundle.model_validate_json(data)
    assert (bundle.site, bundle.origins, bundle.report, bundle.minimum_epoch) == ("lab", (URL,), URL, 0)


def test_the_authority_is_one(site: Path) -> None:
    context = ssl.create_default_context(cafile=str(site / "tls/ca.crt"))
    assert context.cert_store_stats() == {"x509": 1, "crl": 0, "x509_ca": 1}


def test_init_leaves_a_folder_that_is_not_empty_alone(tmp_path: Path, run: Run) -> None:
    (tmp_path / "mine").write_text("x")
    ran = run("init", tmp_path)
    assert (ran.status, ran.err) == (
        1,
        f"Error: {tmp_path} is not empty: choose another, or give --force to add what is missing\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://127.0.0.1:28080", 28080), ("http://netboot.example.org", 80), ("http://[2001:db8::1]:8090", 8090)],
)
def test_the_service_listens_where_machines_are_led(tmp_path: Path, run: Run, url: str, port: int) -> None:
    assert run("init", tmp_path / "site", "--url", url, "--join-url", "https://127.0.0.1:28443").status == 0
    config = load_config(tmp_path / "site" / "netboot.yaml")
    assert (config.provisioning.url, config.provisioning.listen.port) == (url, port)
    assert config.join is not None and config.join.listen.port == 28443
    assert "leads machines to port" not in run("config", "check", "--config", tmp_path / "site" / "netboot.yaml").err


def test_a_url_that_leads_to_another_port_is_warned_of(site: Path, run: Run) -> None:
    """By no fault: what is between may map one to the other."""
    config = site / "netboot.yaml"
    config.write_text(config.read_text().replace(f"url: {URL}", "url: http://192.0.2.1"))
    assert run("config", "bundle", "--config", config).status == 0
    checked = run("config", "check", "--config", config)
    words = (
        r"provisioning\.url http://192\.0\.2\.1 leads machines to port 80, and provisioning\.listen is \S+:8080: they "
        r"reach the service only where a load balancer or a proxy is between; else give both one port"
    )
    assert checked.status == 0
    assert re.fullmatch(f"warning: {words}\n", checked.err), checked.err
    assert re.search(f"WARN  site: listeners: {words}\n", run("doctor", "--config", config).out)


def test_nothing_is_written_where_the_options_make_no_configuration(tmp_path: Path, run: Run) -> None:
    ran = run("init", tmp_path / "site", "--url", URL, "--join-url", "https://192.0.2.1:8080")
    assert (ran.status, ran.out) == (2, "")
    meet = r"join\.listen \(\S+:8080\) and provisioning\.listen \(\S+:8080\) meet; give one of them another port"
    said = "Error: nothing was written, for what was given makes no configuration: "
    assert re.fullmatch(re.escape(said) + meet, ran.err.splitlines()[-1]), ran.err
    assert not (tmp_path / "site").exists()


def test_force_writes_nothing_beside_a_configuration_with_faults(tmp_path: Path, run: Run) -> None:
    (tmp_path / "netboot.yaml").write_text("site: mine\n")
    ran = run("init", "--force", tmp_path)
    remedy = "Remedy: correct what is named, then give the command again\n"
    assert ran == (1, "", f"{tmp_path}/netboot.yaml:1: provisioning: this key is required\n{remedy}")
    assert [path.name for path in tmp_path.iterdir()] == ["netboot.yaml"]


def test_force_adds_what_is_missing_and_overwrites_nothing(site: Path, run: Run) -> None:
    (site / "netboot.yaml").write_text(f"site: mine\nprovisioning: {{url: '{URL}'}}\n")
    (site / "inventory/site.yaml").unlink()
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file() and "bundles" not in path.parts}
    assert run("init", "--force", site).status == 0
    assert (site / "inventory/site.yaml").exists()
    for path, content in before.items():
        if path.name != "lock":
            assert path.read_bytes() == content
    assert run("config", "check").status == 0


def test_what_machines_are_told_is_said_as_the_configuration_that_was_kept_has_it(site: Path, run: Run) -> None:
    (site / "netboot.yaml").write_text("site: mine\nprovisioning: {url: 'http://192.0.2.7:8080'}\n")
    told = "machines are told to reach this service at http://192.0.2.7:8080, as the netboot.yaml says that was there"
    assert f"\n{told}\nnext:\n" in run("init", "--force", site).out
    asked = run("init", "--force", site, "--url", "http://192.0.2.8:8080").out
    assert f"\n{told}, not http://192.0.2.8:8080\nnext:\n" in asked
    assert "told to reach" not in run("init", "--force", site, "--url", "http://192.0.2.7:8080").out
    why = "as the netboot.yaml says that was there: edit it to change that"
    asked = run("init", "--force", site, "--join-url", "https://192.0.2.8:8443", "--site", "b").out
    assert f"\nmachines join no cluster, {why}\nthis is site mine, not b, {why}\nnext:\n" in asked
    joins = 'join: {url: "https://192.0.2.7:8443"}'
    (site / "netboot.yaml").write_text(f"{(site / 'netboot.yaml').read_text()}{joins}\n")
    asked = run("init", "--force", site, "--join-url", "https://192.0.2.8:8443").out
    assert f"\nmachines join at https://192.0.2.7:8443, not https://192.0.2.8:8443, {why}\nnext:\n" in asked
    assert why not in run("init", "--force", site, "--join-url", "https://192.0.2.7:8443").out


def test_files_that_look_like_an_inventory_s_and_are_not_read_are_named(site: Path, run: Run) -> None:
    folder = site / "inventory"
    for name in ("old.yml", "racks/r1.yaml", ".git/x.yaml", ".gitlab-ci.yml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("machines: []\n")
    ran = run("config", "check")
    named = f"{folder}/old.yml, {folder}/racks/r1.yaml"
    assert (ran.status, ran.err) == (0, f"warning: not read, for the inventory is {folder}/*.yaml: {named}\n")


def test_a_second_token_that_is_too_short_is_named_by_its_line(site: Path, run: Run) -> None:
    file = site / "secrets/operator.token"
    file.write_text(f"# alice\n{file.read_text()}# bob\nshort\n\n")
    ran = run("config", "check", "-o", "json")
    (fault,) = json.loads(ran.out)["faults"]
    cure = "remove the line, write a longer one, or begin it with # where it is a name"
    said = f"has fewer than 16 characters, so it is no token: {cure}"
    assert (fault["file"], fault["line"], fault["message"]) == (str(file), 4, said)


def test_a_site_whose_images_are_signed_elsewhere_gets_no_key_of_its_own(tmp_path: Path, run: Run) -> None:
    elsewhere = KeyRing(tmp_path / "elsewhere")
    info = elsewhere.create()
    (tmp_path / "site/keys").mkdir(parents=True)
    (tmp_path / f"site/keys/{info.id}.pub").write_bytes(elsewhere.public_bytes(info.id))
    assert run("init", "--force", tmp_path / "site").status == 0
    assert [path.name for path in (tmp_path / "site/keys").iterdir()] == [f"{info.id}.pub"]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--site", "Lab 1", "use lower-case letters, digits, '-' and '.', at most 63, like 'lab' or 'fra-1'"),
        ("--url", "192.0.2.1:8080", "must be http:// or https://, a host or address"),
    ],
)
def test_init_says_what_is_wrong_before_it_writes(
    tmp_path: Path, run: Run, option: str, value: str, words: str
) -> None:
    ran = run("init", tmp_path / "site", option, value)
    assert ran.status == 2
    assert words in " ".join(ran.err.split())
    assert not (tmp_path / "site").exists()


def test_a_site_may_have_a_name_that_yaml_would_read_otherwise(tmp_path: Path, run: Run) -> None:
    assert run("init", tmp_path / "site", "--site", "123").status == 0
    assert load_config(tmp_path / "site/netboot.yaml").site == "123"


def test_faults_of_all_files_come_at_once(site: Path, run: Run) -> None:
    (site / "netboot.yaml").write_text(
        f"site: lab\ninventory: inv\nminimum_epoch: -1\nprovisioning: {{url: '{URL}'}}\n"
    )
    (site / "inv").mkdir()
    (site / "inv/a.yaml").write_text("machines:\n- {name: m, match: {serial: CZ1}, profile: p}\n")
    ran = run("config", "check")
    assert ran.status == 1
    assert ran.err.replace(f"{site}/", "") == (
        "inv/a.yaml:2: machines[0].profile: no profile is named 'p'; no profile is declared at all\n"
        "netboot.yaml:3: minimum_epoch: must be 0 at least (given: -1)\n"
        "Remedy: correct what is named, then give the command again\n"
    )


def test_what_surrounds_a_sound_configuration_is_checked_too(site: Path, run: Run) -> None:
    text = (site / "netboot.yaml").read_text().replace("origins: []", "origins: ['http://rack1']")
    (site / "netboot.yaml").write_text(text)
    (site / "secrets/operator.token").chmod(0o644)
    (site / "inventory/site.yaml").write_text(f"channels:\n- {{name: stable, image: {'a' * 64}}}\n")
    (site / "data").write_text("not a folder")
    ran = run("config", "check", "-o", "json")
    assert ran.status == 1
    found = [
        (fault["file"].replace(f"{site}/", ""), fault["message"].replace(f"{site}/", ""))
        for fault in json.loads(ran.out)["faults"]
    ]
    assert sorted(found) == [
        ("data", f"data cannot be written by this user, and the service keeps its data here: {AS_WHOM}"),
        (
            "secrets/operator.token",
            "others can read the operator's token (mode 0644): `chmod 600 secrets/operator.token`",
        ),
        (
            "store",
            (
                f"channel stable is pinned to image {'a' * 12} in the inventory: no image {'a' * 64} in store: "
                "pull or build that one, or change the pin"
            ),
        ),
        (
            "store/site/bundle.json",
            f"origins is {URL} in the bundle and http://rack1, {URL} in the configuration; run `netboot config bundle`",
        ),
    ]


def replaced(path: Path, content: bytes) -> None:
    path.unlink()  # which whoever owns the folder may, though nobody may write to the file
    path.write_bytes(content)


def listening_everywhere(config: Path) -> None:
    config.write_text(config.read_text().replace("listen: 127.0.0.1:8081", "listen: 0.0.0.0:8081"))


def test_plain_http_for_operators_has_to_be_said(site: Path, run: Run) -> None:
    config = site / "netboot.yaml"
    listening_everywhere(config)
    assert run("config", "check").status == 1
    config.write_text(config.read_text().replace("0.0.0.0:8081\n", "0.0.0.0:8081\n  plain_http: true\n"))
    assert run("config", "check").status == 0


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            lambda site: replaced(site / "store/site/bundle.json", b"{}"),
            "does not fit: altered after it was signed; run",
        ),
        (lambda site: (site / "store/site/bundle.sig").unlink(), "no signed site bundle in"),
        (
            lambda site: changed(site / "netboot.yaml", "discovery: {channel: new}\n"),
            "discovery.channel: no channel is named 'new': name one of the inventory (stable)",
        ),
        (
            lambda site: [path.unlink() for path in site.glob("keys/*")],
            "holds no public key (*.pub): run `netboot key create`",
        ),
        (lambda site: (site / "keys/x.pub").write_text("junk"), "x.pub: not a file of signify's"),
        (
            lambda site: [path.unlink() for path in site.glob("secrets/*")],
            "the operator's token is not there: make one with `netboot access token host`",
        ),
        (
            lambda site: replaced(site / "secrets/operator.token", b"\xff" * 32),
            "operator.token: the operator's token cannot be read: it is not UTF-8 text: put it right there\n",
        ),
        (lambda site: (site / "secrets/operator.token").write_text("short"), "has fewer than 16 characters"),
        (
            lambda site: listening_everywhere(site / "netboot.yaml"),
            (
                "netboot.yaml: management.listen: operators' tokens would cross a network unencrypted at 0.0.0.0:8081: "
                "give it `management.tls`, or listen on loopback behind a proxy that brings TLS; or say "
                "`management.plain_http: true`, where that network is yours alone\n"
            ),
        ),
        (
            lambda site: (site / "store").rename(site / "moved"),
            "is not a folder: `netboot image build` makes the store",
        ),
    ],
)
def test_each_thing_that_can_be_wrong(site: Path, run: Run, harm: Callable[[Path], object], words: str) -> None:
    harm(site)
    ran = run("config", "check")
    assert ran.status == 1
    assert words in ran.err
    assert ran.err.replace("Remedy: correct what is named, then give the command again\n", "").count("\n") == 1


def test_the_bundle_follows_the_configuration(site: Path, run: Run) -> None:
    assert run("config", "bundle") == Ran(0, "nothing to do: the site bundle of lab\n", "")
    first = SiteBundle.model_validate_json(Store(site / "store").bundle()[0])
    (site / "netboot.yaml").write_text(
        (site / "netboot.yaml").read_text().replace("minimum_epoch: 0", "minimum_epoch: 4")
    )
    assert run("config", "bundle") == Ran(0, "signed and installed the site bundle of lab\n", "")
    second = SiteBundle.model_validate_json(Store(site / "store").bundle()[0])
    assert second.minimum_epoch == 4
    assert second.issued > first.issued
    assert run("config", "check").status == 0


def test_a_new_key_signs_the_bundle_again(site: Path, run: Run) -> None:
    ring = KeyRing(site / "keys")
    old = ring.signing_key().public
    run("key", "rotate")
    new = ring.signing_key().public
    assert run("config", "bundle").out == "signed and installed the site bundle of lab\n"
    assert run("config", "bundle").out == "nothing to do: the site bundle of lab\n"
    data, signatures = Store(site / "store").bundle()
    assert signers_of(signatures) == (old.id, new.id)
    for key in (old, new):  # machines of images from before the rotation know the old one only
        assert check_bundle(data, signatures, [key]).site == "lab"
    run("key", "retire", old.id)
    assert run("config", "bundle").out == "signed and installed the site bundle of lab\n"
    assert signers_of(Store(site / "store").bundle()[1]) == (new.id,)


def test_the_key_may_be_elsewhere(site: Path, tmp_path: Path, run: Run) -> None:
    (site / "keys").rename(tmp_path / "vault")
    (site / "keys").mkdir()
    (public,) = (tmp_path / "vault").glob("*.pub")
    (site / "keys" / public.name).write_bytes(public.read_bytes())
    (site / "netboot.yaml").write_text(
        (site / "netboot.yaml").read_text().replace("minimum_epoch: 0", "minimum_epoch: 4")
    )

    ran = run("config", "bundle")
    assert ran.status == 1
    assert ran.err.startswith("Error: not signed: no private key to sign with in ")
    assert ran.err.endswith(
        "The bundle is in lab-bundle.json. Where the key is: `netboot config bundle --sign lab-bundle.json`; "
        "then here: `netboot config bundle --signature lab-bundle.sig`\n"
    )
    assert run("config", "check").status == 1
    assert run("config", "bundle", "--keys", tmp_path / "vault", "--sign", "lab-bundle.json").status == 0
    assert run("config", "bundle", "--signature", "lab-bundle.sig") == Ran(0, "installed the site bundle of lab\n", "")
    assert run("config", "check").status == 0


def test_a_bundle_of_a_stranger_or_of_another_configuration_is_not_installed(
    site: Path, tmp_path: Path, run: Run
) -> None:
    before = Store(site / "store").bundle()
    data = load_config(site / "netboot.yaml").site_bundle(7).to_bytes()
    (site / "x.json").write_bytes(data)
    KeyRing(tmp_path / "stranger").create()
    (site / "x.sig").write_bytes(KeyRing(tmp_path / "stranger").signing_key().sign(data))
    assert "which is not trusted here" in run("config", "bundle", "--signature", "x.sig").err

    other = data.replace(b'"minimum_epoch":0', b'"minimum_epoch":9')
    (site / "x.json").write_bytes(other)
    (site / "x.sig").write_bytes(KeyRing(site / "keys").signing_key().sign(other))
    assert run("config", "bundle", "--signature", "x.sig").err == (
        "Error: that bundle is not of this configuration: minimum_epoch is 9 in the bundle and 0 in the configuration\n"
        "Remedy: write it anew: `netboot config bundle`\n"
    )

    spaced = json.dumps(json.loads(data), indent=1).encode()  # the initrd reads it with sed
    (site / "x.json").write_bytes(spaced)
    (site / "x.sig").write_bytes(KeyRing(site / "keys").signing_key().sign(spaced))
    for ran in (run("config", "bundle", "--signature", "x.sig"), run("config", "bundle", "--sign", "x.json")):
        assert ran.err.endswith(
            "not a site bundle: its bytes are not in canonical form: write it anew with `netboot config bundle`\n"
        )
    (site / "x.json").write_text("junk")
    assert "x.json is not a site bundle" in run("config", "bundle", "--sign", "x.json").err
    assert "there is no nowhere.json\n" in run("config", "bundle", "--sign", "nowhere.json").err
    assert Store(site / "store").bundle() == before


def test_show_says_what_is_in_force(site: Path, run: Run) -> None:
    shown = json.loads(run("config", "show", "-o", "json").out)
    assert shown["provisioning"]["url"] == URL
    assert shown["management"]["listen"] == "127.0.0.1:8081"
    assert shown["store"] == str(site / "store")
    table = run("config", "show").out
    assert "provisioning.max_connections_per_address  128" in table
    assert f"management.token_file                     {site}/secrets/operator.token" in table


def test_without_a_configuration(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no configuration at netboot.yaml" in run("config", "show").err
    words = (
        "Error: no configuration at netboot.yaml: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
        "or make a new site with `netboot init DIR`\n"
    )
    for command in (("config", "check"), ("doctor",), ("machine", "show", "gpu-001"), ("serve",)):
        assert run(*command) == Ran(3, "", words)
    (tmp_path / "netboot.yaml").mkdir()
    assert run("config", "check").err.splitlines() == [
        f"{tmp_path}/inventory: is not there: the inventory is a folder of *.yaml files",
        f"{tmp_path}/netboot.yaml: cannot be read: Is a directory",
        "Remedy: correct what is named, then give the command again",
    ]


SERVERS = "ubuntu-24.04-gpu is for servers; without NVIDIA's GPUs ubuntu-24.04-cpu, of Debian debian-12-gpu, -cpu\n"
LAPTOP = "debian-12-minimal is for virtual machines alone, as on a laptop: small, without drivers of servers' cards\n"


@pytest.mark.parametrize(
    ("hardware", "image", "said"),
    [
        (("--hardware", "server"), "ubuntu-24.04-gpu", SERVERS),
        (("--hardware", "vm"), "debian-12-minimal", LAPTOP),
        ((), "IMAGE", f"IMAGE: {SERVERS}IMAGE: {LAPTOP}"),
    ],
    ids=["server", "vm", "not said"],
)
def test_the_image_that_is_named_next_is_for_what_is_to_boot(
    tmp_path: Path, run: Run, hardware: tuple[str, ...], image: str, said: str
) -> None:
    out = run("init", tmp_path / "site", "--url", URL, *hardware).out
    assert out.partition("\nnext:\n")[2] == (
        f"  cd {tmp_path}/site\n"
        "  netboot config check                            every fault at once\n"
        f"  netboot image build {image:27} build and sign an image into the store\n"
        "  netboot serve                                   start the service\n"
        f"  netboot channel set stable {image:20} in another terminal: machines boot this image\n"
        f"{said}"
        "docs/shipped-recipes.md has all images\n"
        "back up keys/, secrets/ and tls/; .gitignore keeps their private parts out of git\n"
    )


def test_before_the_service_comes_which_cluster_machines_join(tmp_path: Path, run: Run) -> None:
    out = run("init", tmp_path / "site", "--url", URL, "--join-url", "https://192.0.2.1:8443").out
    assert out.partition("\nnext:\n")[2].splitlines()[:3] == [
        f"  cd {tmp_path}/site",
        "  edit netboot.yaml: `clusters`                   which cluster machines join: docs/first-rack.md",
        "  netboot config check                            every fault at once",
    ]


def test_state_may_be_in_a_folder_of_its_own(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "with: a colon"
    assert run("init", tmp_path / "site", "--url", URL, "--state", state).status == 0
    config = load_config(tmp_path / "site/netboot.yaml")
    assert (config.data, config.store) == (state / "data", state / "store")
    assert Store(state / "store").bundle()
    assert not (tmp_path / "site/store").exists()


def test_files_are_given_to_an_account_that_is_there_and_by_root_alone(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid, words in ((0, "there is no account nobody-here"), (1000, "root alone can give files away")):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        ran = run("init", tmp_path / "site", "--url", URL, "--owner", "nobody-here")
        assert (ran.status, words in ran.err) == (2, True)
    assert not (tmp_path / "site").exists()


def test_a_host_has_one_site_that_is_found_from_everywhere(
    site: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "HOST", site / "netboot.yaml")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("config", "check").out.startswith(f"{site}/netboot.yaml: no faults")
    (tmp_path / "elsewhere/netboot.yaml").write_text("site: other\n")
    assert "elsewhere/netboot.yaml:1: provisioning: this key is required" in run("config", "check").err
    monkeypatch.setenv("NETBOOT_CONFIG", str(tmp_path / "none.yaml"))
    assert "no configuration at" in run("config", "check").err


def changed(path: Path, more: str) -> None:
    path.write_text(path.read_text() + more)


def test_a_token_of_nobody_is_warned_of_and_one_command_puts_one_with_an_end_in_its_place(site: Path, run: Run) -> None:
    assert run("config", "check").err == "", "a new site has none"
    file, hashes = site / "secrets/operator.token", site / "secrets/access.json"
    file.write_text("as-sites-of-before-have-it\n")
    said = run("config", "check")
    warned = (
        "warning: secrets/operator.token still opens everything: its tokens are admins', in plain text, of nobody and "
        "without an end. Give whoever uses it elsewhere a token of their own (`netboot access token create NAME --role "
        "ROLE --ttl 90d > FILE`, then `netboot context add` or --token-file); for the commands of this host `netboot "
        "access token host` puts one with a name and an end in its place\n"
    )
    assert (said.status, said.err.replace(f"{site}/", "")) == (0, warned)
    words = said.err.removeprefix("warning: ").rstrip()
    told = [each for each in diagnose(site / "netboot.yaml") if each.name == "tokens"]
    assert told == [Diagnosis("site", "tokens", "warn", words)]
    assert run("access", "token", "host").out.startswith("commands of this host are host-admin, admin, until ")
    assert (run("config", "check").err, stat.S_IMODE(file.stat().st_mode)) == ("", 0o600)
    [kept] = json.loads(hashes.read_text())["tokens"]
    assert (kept["name"], kept["role"], kept["expires_ms"] - kept["created_ms"]) == (
        "host-admin",
        "admin",
        366 * 86_400_000,
    )
    file.unlink()
    assert run("config", "check").err == "", "whoever has a token of their own needs none"


def test_the_end_of_the_token_of_a_host_is_said_a_month_before(site: Path, run: Run) -> None:
    file = f"{site}/secrets/operator.token"
    for ttl, verb in (("31d", None), ("29d", "ends"), ("1m", "ends")):
        assert run("access", "token", "host", "--ttl", ttl).status == 0
        [token] = run("access", "token", "list", "-o", "json").json["tokens"]
        end = f"{token['expires_at'][:19].replace('T', ' ')}Z"
        by = f"warning: the token host-admin in {file}, by which commands of this host ask, {verb} at {end}: "
        assert run("config", "check").err == (f"{by}`netboot access token host` makes a new one\n" if verb else "")
    hashes = site / "secrets/access.json"
    there = access_tokens.read(hashes)
    ended = there.tokens[0].model_copy(update={"expires_ms": 1_700_000_000_000})
    hashes.write_bytes(access_tokens.to_bytes(there.model_copy(update={"tokens": (ended,)})))
    assert " ended at 2023-11-14 22:13:20Z: " in run("config", "check").err
    assert run("access", "token", "revoke", "host-admin").status == 0
    words = f"the token in {file} opens nothing, for it was revoked: `netboot access token host` makes a new one"
    assert run("config", "check").err == f"warning: {words}\n"


def test_init_that_was_cut_off_goes_on_and_brings_back_no_token_that_was_removed(
    site: Path, tmp_path: Path, run: Run
) -> None:
    hashes, text = site / "secrets/access.json", site / "secrets/operator.token"
    hashes.unlink()
    assert run("init", "--force", site, "--url", URL).status == 0
    assert run("config", "check").err == "", "the hash is of the text that was there"
    text.unlink()
    assert run("init", "--force", site, "--url", URL).status == 0
    assert not text.exists()
    hashes.unlink()
    text.write_bytes(b"\xff" * 32)
    assert run("init", "--force", site, "--url", URL).status == 0
    assert json.loads(hashes.read_text()) == {"tokens": []}


def test_the_operators_certificate_is_looked_at_and_its_end_is_said_a_month_before(site: Path, run: Run) -> None:
    config, tls = site / "netboot.yaml", site / "tls"
    config.write_text(config.read_text().replace("  # tls: {auth", "  tls: {auth").replace("}     # for", "}  # for"))
    remedy = "`netboot config management-certificate` makes it anew; one of your own is put in its place"
    assert (
        f"management.tls.certificate cannot be read: No such file or directory; {remedy}" in run("config", "check").err
    )
    assert run("config", "management-certificate").status == 0
    assert run("config", "check").err == ""

    def made(days: int) -> None:
        then = datetime.now(UTC) - timedelta(days=days)
        pair = new_certificate(*new_authority("lab", then), ["localhost"], then)
        for name, pem in zip(("management.crt", "management.key"), pair, strict=True):
            replaced(tls / name, pem)
            (tls / name).chmod(0o600)

    made(794)
    assert run("config", "check").err == "", "31 days are left"
    made(796)
    ends = run("config", "check")
    assert (ends.status, f"the operators' certificate {tls}/management.crt ends at " in ends.err) == (0, True)
    made(826)
    assert "management.crt: it expired at " in run("config", "check").err
    replaced(tls / "management.key", (tls / "ca.key").read_bytes())
    assert "management.tls.key is not the key of management.tls.certificate" in run("config", "check").err
    replaced(tls / "management.crt", b"junk")
    assert f"management.tls.certificate is not a certificate in PEM; {remedy}" in run("config", "check").err


def test_a_full_file_of_tokens_takes_none_of_a_host(site: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("access", "token", "revoke", "host-admin").status == 0
    assert run("access", "token", "create", "alice", "--role", "admin").status == 0
    monkeypatch.setattr(access_tokens, "MOST", 1)
    ran = run("access", "token", "host")
    full = f"Error: {site}/secrets/access.json holds 1 tokens, and takes no more\nRemedy: revoke some\n"
    assert (ran.status, ran.err) == (1, full)
    assert [each.name for each in access_tokens.read(site / "secrets/access.json").tokens] == ["alice"]
