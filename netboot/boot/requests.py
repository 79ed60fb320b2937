"""What machines send: bodies, bounded in size and time and strict; and the query of one that is in a boot."""

import asyncio
from typing import TypeVar
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import BaseModel, ValidationError

from images.values.faults import first_fault
from netboot.boot import answers
from netboot.connections import read_body
from netboot.lifecycle.errors import BadClaimError
from netboot.machines.identity import parse_mac

M = TypeVar("M", bound=BaseModel)


async def taken(request: web.BaseRequest, longest: int, seconds: float, what: str) -> bytes | web.Response:
    """The body, at most `longest` bytes of it, or the answer to one that is too long or too slow. `what`: `an event`.

    Raises:
        BadClaimError: it is not framed as HTTP has it.
    """
    if (request.content_length or 0) > longest:
        return _refused(413, f"{what} has at most {longest} bytes: send less")
    try:
        async with asyncio.timeout(seconds):
            body = await read_body(request, longest)
    except TimeoutError:
        return _refused(408, f"the body did not arrive within {seconds:g} seconds: send faster")
    except (web.RequestPayloadError, HttpProcessingError):
        raise BadClaimError(f"not {what}: its body is not framed as HTTP has it") from None
    return _refused(413, f"{what} has at most {longest} bytes: send less") if body is None else body


def parsed(body: bytes, model: type[M], what: str) -> M:
    """The value in a body.

    Raises:
        BadClaimError: naming the first field that is wrong.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise BadClaimError(f"not {what}: {first_fault(error)}") from None


def machine_and_mac(query: str) -> tuple[str, str]:
    """`machine` and `mac` of a query as it came; "" for what is not there once, or is no MAC."""
    try:
        fields = parse_qs(query, max_num_fields=8)
    except ValueError:
        return "", ""
    machine, mac = (values[0] if len(values := fields.get(name, [])) == 1 else "" for name in ("machine", "mac"))
    try:
        return machine, parse_mac(mac)
    except ValueError:
        return machine, ""


def _refused(status: int, line: str) -> web.Response:
    answer = answers.text(status, line)
    answer.force_close()
    return answer
