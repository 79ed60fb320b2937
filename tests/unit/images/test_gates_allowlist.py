"""`secrets_allowlist`: what looks like a secret and is none is passed over by its content, and said."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from images.build.context import Context
from images.build.gates import content
from images.build.gates.checks import secrets
from images.build.gates.gate import report
from images.build.step import Product
from images.build.steps import gates as step
from images.recipe.inherit import load
from images.recipe.recipe import AllowedSecret
from images.values.digests import plain
from tests.unit.images.gate_facts import CONTENT, facts, recipe_facts, said
from tests.unit.images.test_recipe import MINIMAL, faults, folder, write

__all__ = ["folder"]

PATH = "/etc/java-17-openjdk/security/java.security"
EXAMPLE = b"# an example of jdk.security.caDistrustPolicies\nkeystore.password=Kx7vR2pQ9wZ3\n"
REASON = "an example in a comment of OpenJDK's own file"
REMEDY = "take it out of the recipe; what machines must know they are told when they run: docs/gates.md"


def allowed(data: bytes, path: str = PATH) -> AllowedSecret:
    return AllowedSecret(path=path, sha256=sha256(data).hexdigest(), reason=REASON)


def test_the_very_content_is_passed_over_and_said_and_another_is_a_finding_again(tmp_path: Path) -> None:
    digest, other = sha256(EXAMPLE).hexdigest(), sha256(b"other").hexdigest()
    found = replace(CONTENT, logins={PATH: ("a-rule",)}, digests={PATH: digest})
    recipe = recipe_facts(secrets_allowlist=(allowed(EXAMPLE),))
    one = facts(tmp_path, content=found, recipe=recipe)
    assert said(secrets.GATE, one) == []
    assert report(one, [secrets.GATE]) == [
        {
            "gate": "secrets",
            "looked_at": "3 files, 3 MiB",
            "passed_over": [f"{PATH} holds a login, a token or a password (a-rule): {REASON}"],
        }
    ]
    two = facts(tmp_path, content=replace(found, digests={PATH: other}), recipe=recipe)
    changed = "secrets_allowlist names another content of it: read it again, and if all is well there, its SHA-256 is"
    assert said(secrets.GATE, two) == [
        f"secrets: {PATH} holds a login, a token or a password (a-rule)\n  {REMEDY}; {changed} {other}"
    ]
    assert report(two, [secrets.GATE])[0]["passed_over"] == [
        f"{PATH}: nothing that is allowed was found there, secrets_allowlist need not name it with that content"
    ]


def test_all_that_is_passed_over_in_one_file_is_said(tmp_path: Path) -> None:
    """The reason may be for an example of a hash, and a private key lie beside it."""
    digest = sha256(EXAMPLE).hexdigest()
    found = replace(CONTENT, private_keys={PATH: "PEM"}, password_hashes=(PATH,), digests={PATH: digest})
    one = facts(tmp_path, content=found, recipe=recipe_facts(secrets_allowlist=(allowed(EXAMPLE),)))
    assert report(one, [secrets.GATE])[0]["passed_over"] == [
        f"{PATH} holds a private key (PEM): {REASON}",
        f"{PATH} holds a password hash (crypt(5)): {REASON}",
    ]


def test_it_is_that_file_of_the_root_alone(tmp_path: Path) -> None:
    """The same bytes elsewhere are a finding, in the initrd too; and no account can be allowed."""
    digest = sha256(EXAMPLE).hexdigest()
    found = replace(CONTENT, logins={"/etc/b": ("a-rule",)}, digests={"/etc/b": digest})
    more = {"early_logins": {PATH: ("a-rule",)}, "early_keys": {PATH: "PEM"}, "accounts": ("user root in /etc/shadow",)}
    recipe = recipe_facts(secrets_allowlist=(allowed(EXAMPLE), allowed(EXAMPLE, "/etc/shadow")))
    words = said(secrets.GATE, facts(tmp_path, content=found, recipe=recipe, **more))
    assert [line.partition("\n")[0] for line in words] == [
        "secrets: /etc/b holds a login, a token or a password (a-rule)",
        f"secrets: {PATH} in the initrd holds a private key (PEM)",
        f"secrets: {PATH} in the initrd holds a login, a token or a password (a-rule)",
        "secrets: user root in /etc/shadow",
    ]


def test_without_one_nothing_is_said(tmp_path: Path) -> None:
    assert report(facts(tmp_path), [secrets.GATE]) == [{"gate": "secrets", "looked_at": "3 files, 3 MiB"}]


def test_the_digest_of_each_file_with_a_finding_and_of_no_other(tmp_path: Path) -> None:
    files = {
        "/etc/a.pem": b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 64 + b"\n-----END PRIVATE KEY-----\n",
        "/etc/b": b"x:$6$saltsalt$" + b"c" * 86 + b"\n",
        "/etc/netrc": b"machine m login b password Kx7vR2pQ9w\n",
        "/etc/plain": b"nothing\n",
    }
    for path, data in files.items():
        (tmp_path / path[1:]).parent.mkdir(exist_ok=True)
        (tmp_path / path[1:]).write_bytes(data)
    found = content.read(tmp_path)
    assert (*found.private_keys, *found.password_hashes, *found.logins) == ("/etc/a.pem", "/etc/b", "/etc/netrc")
    assert found.digests == {path: sha256(data).hexdigest() for path, data in files.items() if path != "/etc/plain"}


ALLOWED = f"secrets_allowlist:\n- path: /etc/a\n  sha256: {'a' * 64}\n  reason: {REASON}\n"


def test_a_recipe_and_its_heir_both_allow_and_the_provenance_has_it(folder: Path) -> None:
    write(folder, MINIMAL + ALLOWED, "base.yaml")
    heir = load(write(folder, f"base: ./base.yaml\n{ALLOWED.replace('/etc/a', '/etc/b')}"))
    assert [one.path for one in heir.secrets_allowlist] == ["/etc/a", "/etc/b"]
    assert heir.as_json()["secrets_allowlist"][0] == {"path": "/etc/a", "sha256": "a" * 64, "reason": REASON}
    assert "secrets_allowlist" not in load(write(folder, MINIMAL)).as_json()


def test_the_step_hands_it_to_the_gate_so_that_a_change_of_it_is_judged_anew(folder: Path) -> None:
    recipe = load(write(folder, MINIMAL + ALLOWED))
    products = dict.fromkeys(("bootstrap", "configure", "kernel", "initrd"), Product("key", folder))
    inputs = step.STEP.inputs(Context(recipe, {}, ()), products)
    assert inputs.recipe.secrets_allowlist == recipe.secrets_allowlist
    other = recipe.model_copy(update={"secrets_allowlist": ()})
    assert plain(step.STEP.inputs(Context(other, {}, ()), products)) != plain(inputs)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("/etc/a", "etc/a", "path: 'etc/a' is not an absolute path without '..', '//' or a slash at the end"),
        ("a" * 64, "a" * 63, "sha256: must be a SHA-256 digest: 64 lower-case hexadecimal characters"),
        (REASON, "why not", "reason: must be one line of 10 to 300 characters"),
        (f"  reason: {REASON}\n", "", "reason: this key is required"),
    ],
)
def test_what_an_entry_must_say(folder: Path, old: str, new: str, fault: str) -> None:
    found = faults(write(folder, MINIMAL + ALLOWED.replace(old, new)))
    assert fault in found and "secrets_allowlist" in found
