"""Gate *secrets*: no private key and no password is inside. Whoever can reach the boot network can read an image."""

import re

from images.build.gates.facts import Content, Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

_SELF_TESTED = re.compile(r"(/usr)?/lib/[a-z0-9_-]+/libgnutls\.so\.30\.[0-9.]+")
"""Libraries with the keys of their own self-tests, which are published (GnuTLS lib/crypto-selftests-pk.c)."""


def _published(path: str, content: Content) -> bool:
    return path in content.machines and _SELF_TESTED.fullmatch(path) is not None


def check(facts: Facts) -> list[Finding]:
    """One finding for each file with a key, a hash or a login, and for each account with a password."""
    content = facts.content
    keys = [
        *((path, kind) for path, kind in content.private_keys.items() if not _published(path, content)),
        *((f"{path} in the initrd", kind) for path, kind in facts.early_keys.items()),
    ]
    logins = [
        *content.logins.items(),
        *((f"{path} in the initrd", found) for path, found in facts.early_logins.items()),
    ]
    return [
        *(
            Finding(
                "secrets",
                f"{path} holds a private key ({kind})",
                "take it out of the recipe; machines make or fetch their keys when they run (docs/join.md)",
            )
            for path, kind in keys
        ),
        *(
            Finding(
                "secrets",
                f"{path} holds a password hash (crypt(5))",
                "take it out of the recipe; a hash that everybody can read is a password that anybody can guess",
            )
            for path in content.password_hashes
        ),
        *(
            Finding(
                "secrets",
                f"{path} holds a login, a token or a password ({', '.join(found)})",
                "take it out of the recipe; what machines must know they are told when they run: docs/gates.md",
            )
            for path, found in logins
        ),
        *(
            Finding(
                "secrets",
                account,
                "lock it with '*' in place of the password; log in with keys or certificates",
            )
            for account in facts.accounts
        ),
    ]


def _scope(facts: Facts) -> str:
    return f"{facts.content.files} files, {facts.content.size >> 20} MiB"


GATE = Gate("secrets", check, _scope)
