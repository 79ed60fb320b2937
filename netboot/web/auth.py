"""Who may ask: everything but health and metrics wants the operator's bearer token."""

from flask import Blueprint, g, request

from netboot.web.dependencies import dependencies
from netboot.web.tokens import Operator


def protect(blueprint: Blueprint) -> None:
    """Let only operators into the routes of `blueprint`."""
    blueprint.before_request(_check)


def operator() -> Operator:
    """Who sent this request."""
    found = g.operator
    assert isinstance(found, Operator)
    return found


def _check() -> None:
    g.operator = dependencies().tokens.operator(request.headers.get("Authorization"))
