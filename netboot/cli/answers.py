"""What the management API answers, as commands understand it: JSON, or why not, in words and an exit status."""

from collections.abc import Callable
from typing import Any, Protocol

import click

from netboot.cli.outcomes import CANNOT_TELL, NOT_ALLOWED, UNKNOWN, ApiError, option_of
from netboot.cli.transport import why_not


class Service(Protocol):
    """Which one answers."""

    @property
    def server(self) -> str:
        """Its address."""
        ...

    @property
    def hint(self) -> str:
        """Where that came from, for messages."""
        ...


def asked_twice(ask: Callable[[], Any]) -> Any:
    """What is answered; where the connection broke, to the same once more: by its key it is not done twice."""
    import requests

    try:
        return ask()
    except requests.exceptions.ConnectTimeout:
        raise
    except requests.exceptions.ConnectionError:
        return ask()


def unreachable(client: Service, error: Exception) -> ApiError:
    """It does not answer."""
    why, remedy = why_not(error, client.server)
    remedy = f"{f'{remedy}.' if remedy else 'is `netboot serve` running?'} The address is from {client.hint}"
    return ApiError(f"cannot reach the service at {client.server}: {why}", remedy, CANNOT_TELL)


def not_netboot(client: Service) -> ApiError:
    """Something else answers."""
    remedy = f"check the address (from {client.hint})"
    return ApiError(f"what answers at {client.server} is not netboot's management API", remedy, 1)


def refused(client: Service, answer: Any) -> click.ClickException:
    """It says no: problem details, or nothing of netboot's."""
    try:
        error = answer.json()
        message, remedy = str(error["detail"]), str(error["remedy"])
        message = "\n".join([*map(str, error.get("faults", ())), message])
    except (ValueError, KeyError, TypeError):
        return not_netboot(client)
    field = str(error.get("field", ""))
    if (option := option_of(field)) is not None:
        return click.BadParameter(message.removeprefix(f"{field}: "), click.get_current_context(), option)
    status: int = answer.status_code
    if status == 404:
        code = UNKNOWN
    elif status in (502, 503, 504) or error.get("code") in ("still-running", "outcome-unknown"):
        code = CANNOT_TELL
    elif status in (401, 403, 409, 412, 422):
        code = NOT_ALLOWED
    else:
        code = 1
    return ApiError(message, remedy, code)


def parsed(client: Service, answer: Any) -> Any:
    """The JSON of an answer. Raises ApiError: it is none."""
    try:
        return answer.json()
    except ValueError:
        raise not_netboot(client) from None
