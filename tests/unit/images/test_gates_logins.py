"""Logins, tokens and passwords: one planted secret of each kind, and what only looks like one."""

import base64
import json
import re
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.gates import content, secret_rules
from images.build.gates.checks import secrets
from images.build.gates.go_regex import compiled, translated
from tests.unit.images.gate_facts import CONTENT, facts, said

LOGIN = base64.b64encode(b"builder:Kx7-vR2pQ9w").decode()
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (
        b'{"alg":"RS256","kid":"f3Zk9Qw1"}',
        b'{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:kube-system:gpu"}',
        bytes(range(40, 104)),
    )
)
KEYRING = base64.b64encode(b"\x01\x00" + bytes.fromhex("5b1c2d66") + bytes(4) + b"\x10\x00" + bytes(range(7, 23)))
# Made of pieces, so that nobody who scans this repository takes a sample for a leak.
AWS = "AKIA" + "Q3EGRTZ5XWPLK7M2"
AWS_SECRET = "hT8kLq2Zx9vB4nM7" + "pR3sW6yC1dF5gJ0aE8uK2oQi"
GITHUB = "ghp_" + "a9XkQ2mZ7vB4nT8pR3sW6yC1dF5gJ0hL4uKe"

PLANTED: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "munge": ("/etc/munge/munge.key", bytes(range(256)) * 4, ("munge-key",)),
    "ceph": ("/etc/ceph/ceph.client.admin.keyring", b"[client.admin]\n\tkey = " + KEYRING + b"\n", ("ceph-keyring",)),
    "ceph-secret": ("/etc/ceph/admin.secret", KEYRING + b"\n", ("ceph-keyring",)),
    "docker": (
        "/root/.docker/config.json",
        json.dumps({"auths": {"registry.example.org": {"auth": LOGIN}}}).encode(),
        ("registry-auth",),
    ),
    "containerd": (
        "/etc/containerd/certs.d/r/hosts.toml",
        b'[host."https://r".header]\n  Authorization = "Basic ' + LOGIN.encode() + b'"\n',
        ("authorization-header",),
    ),
    "account": ("/var/run/token", JWT.encode(), ("jwt",)),
    "account-in-a-Secret": (
        "/opt/a.yaml",
        b"apiVersion: v1\nkind: Secret\ndata:\n  token: " + base64.b64encode(JWT.encode()) + b"\n",
        ("jwt-base64", "kubernetes-secret-yaml"),
    ),
    "bootstrap": (
        "/usr/share/x/bootstrap-kubelet.conf",
        b"users:\n- name: kubelet\n  user:\n    token: 07401b.f395accd246ae52d\n",
        ("kubernetes-bootstrap-token",),
    ),
    "aws": (
        "/root/.aws/credentials",
        f"[default]\naws_access_key_id = {AWS}\naws_secret_access_key = {AWS_SECRET}\n".encode(),
        ("aws-access-token",),
    ),
    "netrc": ("/root/.netrc", b"machine mirror.example.org\n  login builder\n  password Kx7vR2\n", ("netrc",)),
    "apt": ("/etc/apt/auth.conf.d/a.conf", b"machine a.example.org login u password s3cr3tKx\n", ("netrc",)),
    "bmc-environment": ("/etc/default/bmc", b"BMC_USER=ops\nBMC_PASSWORD=Kx7vR2pQ\n", ("bmc-password",)),
    "bmc-yaml": ("/usr/share/x/c.yaml", b"idrac_password: 'calvin'\n", ("bmc-password",)),
    "ipmitool": (
        "/usr/local/bin/power",
        b"#!/bin/sh\nipmitool -I lanplus -H $1 -U admin -P Kx7vR2pQ chassis power cycle\n",
        ("bmc-password-argument",),
    ),
    "freeipmi": ("/etc/freeipmi/freeipmi.conf", b"username admin\npassword Kx7vR2pQ\n", ("freeipmi-password",)),
    "github": ("/usr/lib/a", b"token=" + GITHUB.encode() + b"\n", ("github-pat",)),
    "keytab": ("/etc/krb5.keytab", b"\x05\x02\x00", ("kerberos-keytab",)),
    "pkcs12": ("/etc/ssl/site.p12", b"0\x82\x00\x01", ("pkcs12-file",)),
    "chap": ("/etc/iscsi/iscsid.conf", b"node.session.auth.password = Kx7vR2\n", ("iscsi-chap",)),
    "ldap": ("/etc/nslcd.conf", b"base dc=example\nbindpw Kx7vR2\n", ("ldap-password",)),
    "false": ("/home/ops/.netrc", b"machine m login b password true7falseKx\n", ("netrc",)),
    "utf-16": ("/root/_netrc", "machine m login b password s3cr3tKx\n".encode("utf-16"), ("netrc",)),
    "unit": (
        "/usr/lib/systemd/system/app.service",
        b"[Service]\nEnvironment=A=b DB_PASSWORD=Kx7vR2\n",
        ("unit-password",),
    ),
    "fstab": ("/etc/fstab", b"//nas/home /home cifs username=u,password=Kx7vR2 0 0\n", ("mount-password",)),
    "mount": (
        "/etc/systemd/system/home.mount",
        b"[Mount]\nOptions=username=u,password=Kx7vR2\n",
        ("mount-password",),
    ),
    "rndc": ("/etc/bind/rndc.key", b'key "rndc" {\n\tsecret "c3VyZWx5IGEgc2VjcmV0Cg==";\n};\n', ("dns-key",)),
    "chrony": (
        "/etc/chrony/chrony.keys",
        b"# none\n10 SHA1 HEX:1DC764E0791B11FA67EFC7ECBC4B0D73F68A070C\n",
        ("time-key",),
    ),
    "mysql": ("/root/.my.cnf", b"[client]\nuser=root\npassword = Kx7vR2\n", ("database-password",)),
    "postgresql": ("/var/lib/app/.pgpass", b"db:5432:*:app:Kx7vR2\n", ("pgpass",)),
    "url": ("/etc/pip.conf", b"index-url = https://builder:Kx7vR2@mirror.example.org/simple\n", ("url-password",)),
}


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_each_kind_of_secret_is_found_and_named(kind: str) -> None:
    path, data, rules = PLANTED[kind]
    assert secret_rules.secrets(path, data) == rules


def test_as_many_findings_as_planted_secrets(tmp_path: Path) -> None:
    for path, data, _ in PLANTED.values():
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    found = content.read(tmp_path)
    assert sorted(found.logins) == sorted(path for path, _, _ in PLANTED.values())
    assert len(said(secrets.GATE, facts(tmp_path / "facts", content=found))) == len(PLANTED) >= 10


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/usr/bin/program", b"\x7fELF\0" + b"ghp_" + GITHUB.encode()),
        ("/usr/share/doc/curl/netrc", b"machine example.com login daniel password qwerty\n"),
        ("/etc/aws", b"aws_access_key_id = AKIAIOSFODNN7EXAMPLE\n"),
        ("/etc/default/bmc", b"BMC_PASSWORD=$BMC_PASSWORD_FILE\n"),
        ("/etc/containerd/config.toml", b'[plugins]\n  config_path = "/etc/containerd/certs.d"\n'),
        ("/etc/kubeadm.yaml", b"tokens:\n- token: abc.def\n"),
        ("/etc/ssl/certs/a.pem", b"-----BEGIN CERTIFICATE-----\n" + KEYRING[2:] + b"\n"),
        ("/etc/pip.conf", b"index-url = https://mirror.example.org:8443/simple@1\n"),
        ("/root/.docker/config.json", b'{"auths": {}, "credsStore": "pass"}'),
        ("/usr/lib/python3/a.py", b"key = 'Qw8kLq2Zx9vB4nM7pR3s'\n"),
        ("/etc/empty", b""),
        ("/usr/lib/systemd/system/a.service", b"[Service]\nEnvironment=TOKEN_FILE=/run/token PASSWORD=%d/x\n"),
        ("/etc/fstab", b"# //nas/home /home cifs password=Kx7vR2 0 0\n/dev/sda1 / ext4 errors=remount-ro 0 1\n"),
        ("/etc/chrony/chrony.keys", b"# key file\n#1 MD5 AVeryComplicatedKey\n"),
        ("/etc/netrc", b"machine m login b password null\n"),
    ],
)
def test_what_is_no_secret(path: str, data: bytes) -> None:
    assert secret_rules.secrets(path, data) == ()


def test_the_words_for_a_login_in_root_and_initrd(tmp_path: Path) -> None:
    remedy = "\n  take it out of the recipe; what machines must know they are told when they run: docs/gates.md"
    root = replace(CONTENT, logins={"/a": ("b",)})
    assert said(secrets.GATE, facts(tmp_path, content=root, early_logins={"/c": ("d", "e")})) == [
        f"secrets: /a holds a login, a token or a password (b){remedy}",
        f"secrets: /c in the initrd holds a login, a token or a password (d, e){remedy}",
    ]


@pytest.mark.parametrize(
    ("go", "python"),
    [
        (r"a(?i)b", r"a(?i:b)"),
        (r"(?:x(?i)y)z", r"(?:x(?i:y))z"),
        (r"(?:x(?i)y|w)z", r"(?:x(?i:y)|(?i:w))z"),
        (r"(?i)a|b", r"(?i:a)|(?i:b)"),
        (r"[[(?]\z", r"[\[(?]\Z"),
        (r"[^][]\(", r"[^]\[]\("),
        (r"[]a](?s:.)", r"[]a](?s:.)"),
    ],
)
def test_a_pattern_of_gos_in_pythons_words(go: str, python: str) -> None:
    assert translated(go) == python


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [(r"^p(?i)q|r", b"R", b"PQ"), (r"(?:a(?i)b)c", b"aBc", b"aBC"), (r"[^][x]", b"y", b"[")],
)
def test_flags_hold_where_go_lets_them_hold(pattern: str, yes: bytes, no: bytes) -> None:
    assert compiled(pattern).search(yes)
    assert not compiled(pattern).search(no)


def test_the_vendored_rules_are_whole_and_all_of_them_can_be_used() -> None:
    theirs = (secret_rules.FOLDER / "gitleaks.toml").read_bytes()
    told = re.search(r"\b[0-9a-f]{64}\b", Path("docs/decisions/065-secrets-by-gitleaks-rules.md").read_text())
    assert told
    assert told[0] == sha256(theirs).hexdigest()
    ids = {rule["id"] for rule in tomllib.loads(theirs.decode())["rules"]} - {"private-key", "age-secret-key"}
    assert ids <= {rule.id for rule in secret_rules.rules()}


def test_gitleaks_still_has_the_pattern_that_is_put_right() -> None:
    theirs = tomllib.loads((secret_rules.FOLDER / "gitleaks.toml").read_text())
    assert set(secret_rules._MEANT) <= set(theirs["allowlist"]["regexes"])


@given(st.binary(max_size=200))
def test_any_bytes_can_be_looked_at(data: bytes) -> None:
    secret_rules.secrets("/etc/a", data)
    assert secret_rules.entropy(data) >= 0


def test_a_header_at_the_end_of_a_file_and_after_many_blanks() -> None:
    header = b"Authorization: Bearer sk_9fQ2mZx7Lw4Tb8Kd"
    assert secret_rules.secrets("/etc/app.conf", header) == ("authorization-header",)
    assert secret_rules.secrets("/etc/app.conf", b"authorization=" + b" " * 200_000 + b"x") == ()


def test_examples_in_the_code_of_packages_are_none() -> None:
    example = b"Authorization: Bearer 7Fjfp0ZBr1KtDRbnfVdmIw\n"
    assert secret_rules.secrets("/usr/lib/python3/dist-packages/oauthlib/tokens.py", example) == ()
    assert secret_rules.secrets("/usr/lib/python3/dist-packages/PyJWT.egg-info/PKG-INFO", JWT.encode()) == ()
