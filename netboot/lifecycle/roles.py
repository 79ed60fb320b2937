"""What people and programs may do with the management API: three roles, each with all that the one before it may."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """`viewer` looks; `operator` acts on machines and images; `admin` decides who may join, and what is in force."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def may(self, needed: "Role") -> bool:
        """Whether it has what another one has."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom another than this site vouches for. `name`: with what says who does, like `oidc:alice`; `issuer`:
    who does; `expires_ms`: until when, milliseconds since 1970, None: nobody says."""

    name: str
    role: Role
    issuer: str
    expires_ms: int | None


def granted(roles: Mapping[str, str], user: str, groups: Iterable[str]) -> Role | None:
    """The highest role that `roles` gives to `user:` this user or `group:` one of these; None: none."""
    named = [roles.get(f"user:{user}"), *(roles.get(f"group:{group}") for group in groups)]
    return max((Role(each) for each in named if each is not None), key=list(Role).index, default=None)
