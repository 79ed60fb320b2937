"""`init --join-url`, `config check`, `config join-certificate`, `key sealing`: the files of join and their faults."""

import itertools
import json
import shutil
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from images.artifact.bundle import SiteBundle
from images.store.store import Store
from netboot.authorities import read_authorities
from netboot.cli.authority import new_authority, new_certificate
from netboot.cli.joining import faults
from netboot.config import load_config
from netboot.credentials import PUT_IT_THERE
from netboot.stores.sealing import SealingKeysError, new_key, read_keys, sealing_keys, write_keys
from tests.commands import Ran, Run
from tokens.sealed import Keyset

URL, JOIN = "http://192.0.2.1:8080", "https://join.example.org:8443"
CLUSTER = """
clusters:
  default:
    endpoints: ["https://192.0.2.1:6443"]
    authority: tls/cluster.crt
"""

ADD = "add `clusters.{}`, or correct the name"
DAMAGED = "remove that line, or put the file of another replica or of a backup in its place"
KUBECONFIG = "make it anew: `netboot cluster kubeconfigs`; a corrected file is picked up"


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert run("init", tmp_path / "site", "--url", URL, "--join-url", JOIN).status == 0
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


ELSEWHERE = "of one elsewhere ask there, with its file"


def test_a_new_site_with_join_has_no_faults_and_its_secrets_are_its_own(site: Path, run: Run) -> None:
    untold = f"cannot tell whether a service goes by it: none runs on this host with data {site}/data: {ELSEWHERE}"
    said = f"netboot.yaml: no faults; 0 machines, 1 profile, 1 channel\n{untold}\n"
    assert run("config", "check") == Ran(0, said, "")
    for path in ("tls/join.key", "tls/ca.key", "secrets/sealing.keys", "secrets/nonce.keys"):
        assert stat.S_IMODE((site / path).stat().st_mode) == 0o600
    bundle = SiteBundle.model_validate_json(Store(site / "store").bundle()[0])
    assert (bundle.join_url, bundle.join_authorities) == (JOIN, ((site / "tls/ca.crt").read_text(),))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(site / "tls/join.crt", site / "tls/join.key")
    again = run("init", "--force", site, "--url", URL, "--join-url", JOIN)
    assert again.status == 0 and "wrote" not in again.out


def test_without_join_nothing_of_it_is_there_but_a_sample_that_can_be_used(tmp_path: Path, run: Run) -> None:
    assert run("init", tmp_path / "site", "--url", URL).status == 0
    path = tmp_path / "site/netboot.yaml"
    config = load_config(path)
    assert (config.join, config.clusters) == (None, {})
    assert not (tmp_path / "site/secrets/sealing.keys").exists()
    bundle = SiteBundle.model_validate_json(Store(tmp_path / "site/store").bundle()[0])
    assert (bundle.join_url, bundle.join_authorities) == (None, ())
    lines = path.read_text().splitlines()
    start = lines.index("# join:")
    end = next(number for number, line in enumerate(lines) if line.startswith("# Clusters that machines join"))
    active = [line.removeprefix("# ") for line in lines[start:end]]
    path.write_text("\n".join([*lines[:start], *active, *lines[end:]]))
    join = load_config(path).join
    assert join is not None and join.url == "https://192.0.2.10:8443"


def test_the_join_url_is_https(tmp_path: Path, run: Run) -> None:
    ran = run("init", tmp_path / "site", "--join-url", "http://192.0.2.1:8443")
    assert ran.status == 2 and "must be https://: credentials travel here" in ran.err


def test_every_fault_of_joins_files_at_once(site: Path, run: Run) -> None:
    with (site / "netboot.yaml").open("a") as file:
        file.write(CLUSTER)
    (site / "inventory/more.yaml").write_text(
        "machines:\n"
        '  - {name: a, cluster: other, match: {macs: ["52:54:00:00:00:01"]}, profile: default}\n'
        '  - {name: b, cluster: other, match: {macs: ["52:54:00:00:00:02"]}, profile: default}\n'
    )
    then = datetime.now(UTC) - timedelta(days=900)
    authority, key = new_authority("elsewhere", then)
    certificate, _ = new_certificate(authority, key, ["192.0.2.7"], then)
    (site / "tls/join.crt").write_bytes(certificate)
    (site / "tls/join.key").chmod(0o640)
    (site / "secrets/sealing.keys").write_text("c2hvcnQ=\n")
    (site / "secrets/approver.kubeconfig").write_text("not yaml: [")
    ran = run("config", "check", "--output", "json")
    assert ran.status == 1
    found = {(Path(one["file"]).name, one["message"]) for one in json.loads(ran.out)["faults"]}
    renew = "`netboot config join-certificate` makes it anew"
    missing = (
        "clusters.default.{}: {} cannot be read (No such file or directory): make it with `netboot cluster kubeconfigs`"
    )
    expired = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    assert found == {
        ("join.crt", f"it expired at {expired:%Y-%m-%d %H:%M} UTC; {renew}"),
        ("join.crt", f"it is not for join.example.org, the host of join.url; {renew}"),
        ("join.crt", f"none of join.authorities has signed it, so no machine will believe it; {renew}"),
        ("join.key", f"join.key is not the key of join.certificate; {renew}"),
        ("join.key", f"others can read join.key (mode 0640): `chmod 600 {site / 'tls/join.key'}`"),
        ("sealing.keys", f"{site / 'secrets/sealing.keys'}:1: not a sealing key (32 bytes in base64): {DAMAGED}"),
        ("cluster.crt", f"clusters.default.authority cannot be read: No such file or directory: {PUT_IT_THERE}"),
        (
            "issuer.kubeconfig",
            missing.format("issuer", site / "secrets/issuer.kubeconfig"),
        ),
        (
            "nodes.kubeconfig",
            missing.format("nodes", site / "secrets/nodes.kubeconfig"),
        ),
        (
            "approver.kubeconfig",
            f"clusters.default.approver: {site / 'secrets/approver.kubeconfig'} is not YAML: {KUBECONFIG}",
        ),
        ("inventory", f"machine b is of cluster other, which netboot.yaml does not have: {ADD.format('other')}"),
    }


@pytest.mark.parametrize("joins", [True, False])
def test_what_no_cluster_takes_is_said_before_there_is_one(
    site: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, joins: bool
) -> None:
    """Also while nothing joins here: `cluster: prod` means something, or is a slip."""
    if not joins:
        site = tmp_path / "no-join"
        assert run("init", site, "--url", "http://192.0.2.1:8080").status == 0
        monkeypatch.chdir(site)
    (site / "inventory/more.yaml").write_text(
        "machines:\n"
        '  - {name: a, cluster: prod, match: {macs: ["52:54:00:00:00:01"]}, profile: default}\n'
        '  - {name: b, match: {macs: ["52:54:00:00:00:02"]}, profile: default, node: {labels: {a/b/c: x, d.e/f: y}}}\n'
    )
    ran = run("config", "check")
    remedy = "a key is a name of at most 63 characters, or a domain, one / and such a name"
    assert ran.status == 1
    assert ran.err.replace(f"{site}/", "") == (
        f"inventory: machine a is of cluster prod, which netboot.yaml does not have: {ADD.format('prod')}\n"
        f"inventory: machine b: no kubelet takes the label a/b/c: {remedy}\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tls/ca.crt", None, "join.authorities cannot be read: No such file or directory"),
        ("tls/ca.crt", "x", "join.authorities must be certificates in PEM, one or several"),
        ("tls/join.crt", None, "join.certificate cannot be read: No such file or directory; `netboot config join-"),
        ("tls/join.crt", "x", "join.certificate is not a certificate in PEM; `netboot config join-certificate`"),
        ("tls/join.key", None, "join.key cannot be read: No such file or directory; `netboot config join-"),
        ("tls/join.key", "x", "join.key is not a private key in PEM without a passphrase; `netboot config join-"),
        ("secrets/sealing.keys", None, "cannot be read: No such file or directory; `netboot key sealing rotate`"),
        ("secrets/nonce.keys", None, "the nonce keys"),
        ("secrets/nonce.keys", None, "cannot be read: No such file or directory; `netboot key nonces rotate` makes"),
        ("secrets/sealing.keys", "# none\n", "hold no key: `netboot key sealing rotate` makes the first one"),
    ],
)
def test_a_file_that_cannot_be_used(site: Path, run: Run, name: str, content: str | None, message: str) -> None:
    path = site / name
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    ran = run("config", "check")
    assert ran.status == 1 and message in ran.err


def test_an_authority_that_has_expired(site: Path) -> None:
    config = load_config(site / "netboot.yaml")
    messages = [one.message for one in faults(config, None, datetime.now(UTC) + timedelta(days=3651))]
    assert (
        "every authority has expired, so no machine will believe this service: add a new one, with its key beside it, "
        "then `netboot config join-certificate` and `netboot config bundle`"
    ) in messages
    assert any(message.startswith("it expired at ") for message in messages)


def test_the_certificate_is_made_anew_for_more_names(site: Path, run: Run) -> None:
    before = (site / "tls/join.crt").read_bytes()
    ran = run("config", "join-certificate", "--name", "192.0.2.9")
    assert ran == Ran(0, f"{site / 'tls/join.crt'}: for join.example.org, 192.0.2.9\n", "")
    now = (site / "tls/join.crt").read_bytes()
    sans = x509.load_pem_x509_certificate(now).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert now != before
    assert sans.get_values_for_type(x509.DNSName) == ["join.example.org"]
    assert [str(one) for one in sans.get_values_for_type(x509.IPAddress)] == ["192.0.2.9"]
    assert run("config", "check").status == 0
    (site / "tls/ca.key").write_bytes(new_authority("other")[1])
    ran = run("config", "join-certificate")
    assert (
        ran.status == 1
        and "cannot sign: the key is not that of the authority: give the one that was made with it" in ran.err
    )


def test_a_new_authority_overlaps_with_the_old_and_the_bundle_is_due(site: Path, run: Run) -> None:
    new, _ = new_authority("new")
    path = site / "tls/ca.crt"
    path.write_bytes(path.read_bytes() + b"\n" + new)
    assert len(read_authorities(path, "join.authorities")) == 2
    ran = run("config", "check")
    assert ran.status == 1 and "join_authorities is certificate " in ran.err
    assert run("config", "bundle").status == 0
    assert run("config", "check").status == 0


def test_listeners_may_not_meet(site: Path, run: Run) -> None:
    path = site / "netboot.yaml"
    path.write_text(path.read_text().replace('"[::]:8443"', '"[::]:8080"'))
    ran = run("config", "check")
    assert ran.status == 1
    assert "join.listen ([::]:8080) and provisioning.listen ([::]:8080) meet; give one of them another port" in ran.err


# -- sealing keys --------------------------------------------------------------------------------------------------


def ids(path: Path) -> list[str]:
    return [key.id.hex() for key in read_keys(path).keys]


@pytest.mark.parametrize(("group", "file"), [("sealing", "sealing.keys"), ("nonces", "nonce.keys")])
def test_keys_are_rotated_in_three_steps(site: Path, run: Run, group: str, file: str) -> None:
    path, other = site / "secrets" / file, site / "secrets/sealing.keys"
    others = other.read_bytes()
    (old,) = ids(path)
    assert run("key", group, "rotate").status == 0
    old_, new = ids(path)
    assert old_ == old
    assert run("key", group, "rotate", "--promote").status == 0
    assert ids(path) == [new, old]
    ran = run("key", group, "list")
    assert ran.out.split() == ["key", "does", new, "seals,", "opens", old, "opens"]
    assert run("key", group, "rotate", "--retire").status == 0
    assert ids(path) == [new]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("key", group, "rotate", "--promote").status == 1
    assert run("key", group, "rotate", "--promote", "--retire").status == 2
    assert path == other or other.read_bytes() == others
    assert f"netboot key {group} list" in path.read_text()


def test_at_every_step_replicas_that_have_it_and_not_yet_understand_each_other() -> None:
    old, new = new_key(), new_key()
    steps = [Keyset((old,)), Keyset((old, new)), Keyset((new, old)), Keyset((new,))]
    for before, after in itertools.pairwise(steps):
        for sealer, opener in ((before, after), (after, before)):
            sealed = sealer.seal(b"body", b"purpose", 1, 1000)
            assert opener.open(sealed, b"purpose", 2) == b"body"


def test_the_first_key_is_made_and_its_material_never_shown(site: Path, run: Run) -> None:
    path = site / "secrets/sealing.keys"
    path.unlink()
    ran = run("key", "sealing", "rotate", "--output", "json")
    assert [one["seals"] for one in json.loads(ran.out)["keys"]] == [True]
    (key,) = read_keys(path).keys
    for line in path.read_text().splitlines()[1:]:
        assert line.partition(" ")[0] not in ran.out + ran.err
    assert key.id.hex() in ran.out


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_keys_that_others_can_read_are_not_keys(site: Path, mode: int) -> None:
    path = site / "secrets/sealing.keys"
    path.chmod(mode)
    with pytest.raises(SealingKeysError, match=rf"others can read the sealing keys .* \(mode {mode:04o}\)"):
        read_keys(path)


def test_keys_are_read_again_when_the_file_changed_and_kept_when_it_is_broken(site: Path) -> None:
    path = site / "secrets/sealing.keys"
    keys, first = sealing_keys(path), ids(path)
    assert [key.id.hex() for key in keys.current().keys] == first
    write_keys(path, Keyset((new_key(), *read_keys(path).keys)))
    assert [key.id.hex() for key in keys.current().keys] == ids(path) != first
    in_force = ids(path)
    path.write_text("broken\n")
    assert [key.id.hex() for key in keys.current().keys] == in_force
    assert keys.problem == f"{path}:1: not a sealing key (32 bytes in base64): {DAMAGED}; the one before stays in force"
    path.unlink()
    keys.current()
    assert "cannot be read" in str(keys.problem)
    shutil.copy(site / "tls/ca.crt", path)
    with pytest.raises(SealingKeysError):
        sealing_keys(path).current()


def test_a_key_twice_is_a_mistake(site: Path) -> None:
    path = site / "secrets/sealing.keys"
    lines = path.read_text()
    path.write_text(lines + lines)
    with pytest.raises(SealingKeysError, match="hold a key twice"):
        read_keys(path)
