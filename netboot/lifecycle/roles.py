"""What people and programs may do with the management API: three roles, each with all that the one before it may."""

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
