"""Which role each request needs: the one table. What is not in it and changes something is an admin's."""

from netboot.lifecycle.errors import NotAllowedError
from netboot.lifecycle.roles import Role
from netboot.web.operations import template
from netboot.web.tokens import Operator

OPERATORS = frozenset(
    {
        ("PUT", "/v1/channels/<name>"),
        ("POST", "/v1/rollouts"),
        ("POST", "/v1/rollouts/<int:number>/pause"),
        ("POST", "/v1/rollouts/<int:number>/resume"),
        ("POST", "/v1/rollouts/<int:number>/undo"),
        ("POST", "/v1/machines/<name>/enroll"),
        ("POST", "/v1/machines/<name>/retire"),
        ("POST", "/v1/freeze"),
        ("POST", "/v1/unfreeze"),
        ("POST", "/v1/machines/<name>/hold"),
        ("POST", "/v1/machines/<name>/unhold"),
        ("POST", "/v1/machines/<name>/quarantine"),
        ("POST", "/v1/machines/<name>/readmit"),
        ("POST", "/v1/machines/<name>/accept"),
        ("POST", "/v1/machines/<name>/unaccept"),
        ("POST", "/v1/machines/<name>/drain"),
        ("POST", "/v1/machines/<name>/reboot"),
        ("POST", "/v1/machines/<name>/undrain"),
        ("POST", "/v1/machines/<name>/delete-node"),
        ("POST", "/v1/remedies/pause"),
        ("POST", "/v1/remedies/resume"),
    }
)
"""Acts on machines and images. Who looks needs no more than to be known."""


def needed(method: str, route: str) -> Role:
    """The role that a request needs; `route`: as `ROUTES` has it."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return Role.VIEWER
    return Role.OPERATOR if (method, route) in OPERATORS else Role.ADMIN


def require(operator: Operator, method: str, route: str) -> None:
    """
    Raises:
        NotAllowedError: the operator has not the role that this needs.
    """
    role = needed(method, route)
    if not operator.role.may(role):
        raise NotAllowedError(
            f"{method} {template(route)} needs the role {role}, and {operator.who} has the role {operator.role}"
        )
