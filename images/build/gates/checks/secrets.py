"""Gate *secrets*: no private key and no password is inside. Whoever can reach the boot network can read an image."""

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding


def check(facts: Facts) -> list[Finding]:
    """One finding for each file with a key, a hash or a login, and for each account with a password."""
    content = facts.content
    keys = [
        *content.private_keys.items(),
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
