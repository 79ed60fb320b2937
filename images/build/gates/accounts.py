"""Facts of accounts: who has a password. Pure, from the texts of passwd(5), shadow(5) and gshadow(5)."""

from collections.abc import Iterator

from images.build.gates import keys

_LOCKED = ("*", "!", "x")


def with_password(file: str, text: str) -> Iterator[str]:
    """Each account of `file` that has a password or needs none, in words."""
    what = "group" if file.endswith("gshadow") else "user"
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        password = rest.partition(":")[0]
        if not name or name.startswith("#"):
            continue
        if not password and what == "user" and rest:
            yield f"user {name} in {file} needs no password"
        elif password and (keys.password_hash(password.encode()) or not password.startswith(_LOCKED)):
            yield f"{what} {name} in {file} has a password hash"
