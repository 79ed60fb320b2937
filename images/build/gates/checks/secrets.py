"""Gate *secrets*: no private key and no password is inside. Whoever can reach the boot network can read an image."""

import re

from images.build.gates.facts import Content, Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

_SELF_TESTED = re.compile(r"(/usr)?/lib/[a-z0-9_-]+/libgnutls\.so\.30\.[0-9.]+")
"""Libraries with the keys of their own self-tests, which are published (GnuTLS lib/crypto-selftests-pk.c)."""


def _published(path: str, content: Content) -> bool:
    return path in content.machines and _SELF_TESTED.fullmatch(path) is not None


def _allowed(facts: Facts, path: str) -> str | None:
    """The recipe's reason to pass over this very content of a file of the root; None: there is none."""
    digest = facts.content.digests.get(path)
    allowed = facts.recipe.secrets_allowlist
    return next((one.reason for one in allowed if (one.path, one.sha256) == (path, digest)), None)


def _found(facts: Facts) -> list[tuple[str, str, str]]:
    """Path in the root, what was found there and what to do, whether it is allowed or not."""
    content = facts.content
    keys = {path: kind for path, kind in content.private_keys.items() if not _published(path, content)}
    return [
        *((path, *_key(kind)) for path, kind in keys.items()),
        *(
            (
                path,
                "holds a password hash (crypt(5))",
                "take it out of the recipe; a hash that everybody can read is a password that anybody can guess",
            )
            for path in content.password_hashes
        ),
        *((path, *_login(found)) for path, found in content.logins.items()),
    ]


def _key(kind: str) -> tuple[str, str]:
    remedy = "take it out of the recipe; machines make or fetch their keys when they run (docs/join.md)"
    return f"holds a private key ({kind})", remedy


def _login(found: tuple[str, ...]) -> tuple[str, str]:
    remedy = "take it out of the recipe; what machines must know they are told when they run: docs/gates.md"
    return f"holds a login, a token or a password ({', '.join(found)})", remedy


def check(facts: Facts) -> list[Finding]:
    """One finding for each file with a key, a hash or a login that the recipe does not allow by its content, and for
    each account with a password. Nothing in the initrd, and no account, can be allowed."""
    known = {one.path for one in facts.recipe.secrets_allowlist}
    in_root = [
        Finding("secrets", f"{path} {what}", f"{remedy}{_changed(facts, path) if path in known else ''}")
        for path, what, remedy in _found(facts)
        if _allowed(facts, path) is None
    ]
    in_initrd = [
        *((path, *_key(kind)) for path, kind in facts.early_keys.items()),
        *((path, *_login(found)) for path, found in facts.early_logins.items()),
    ]
    accounts = "lock it with '*' in place of the password; log in with keys or certificates"
    return [
        *in_root,
        *(Finding("secrets", f"{path} in the initrd {what}", remedy) for path, what, remedy in in_initrd),
        *(Finding("secrets", account, accounts) for account in facts.accounts),
    ]


def _changed(facts: Facts, path: str) -> str:
    return (
        f"; secrets_allowlist names another content of it: read it again, and if all is well there, "
        f"its SHA-256 is {facts.content.digests[path]}"
    )


def _scope(facts: Facts) -> str:
    return f"{facts.content.files} files, {facts.content.size >> 20} MiB"


def _passed_over(facts: Facts) -> list[str]:
    """What was found and is allowed, with the recipe's reason; then what the recipe allows for nothing."""
    passed = [(path, what, why) for path, what, _ in _found(facts) if (why := _allowed(facts, path)) is not None]
    idle = sorted({one.path for one in facts.recipe.secrets_allowlist} - {path for path, _, _ in passed})
    return [
        *(f"{path} {what}: {why}" for path, what, why in passed),
        *(
            f"{path}: nothing that is allowed was found there, secrets_allowlist need not name it with that content"
            for path in idle
        ),
    ]


GATE = Gate("secrets", check, _scope, _passed_over)
