"""`/v1/channels[/<name>]`: where channels point, and moving them."""

import logging
from typing import Annotated

from flask import Blueprint, Response, jsonify, request
from pydantic import StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.lifecycle.channels import channel_states, declared, move
from netboot.lifecycle.errors import BadClaimError
from netboot.machines.inventory import declared_at
from netboot.web import query, render
from netboot.web.auth import operator, protect
from netboot.web.dependencies import dependencies

blueprint = Blueprint("channels", __name__)
protect(blueprint)
log = logging.getLogger(__name__)


class Wanted(Strict):
    """The body of a PUT. `image`: a digest, the beginning of one, or the name of an image (its newest)."""

    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]


@blueprint.get("/v1/channels")
def listed() -> Response:
    """Every channel of the inventory."""
    query.only(())
    found = channel_states(dependencies().live.view().snapshot, dependencies().repository)
    return jsonify({"channels": [render.plain(one) for one in found]})


@blueprint.get("/v1/channels/<name>")
def shown(name: str) -> Response:
    """One channel."""
    query.only(())
    snapshot = dependencies().live.view().snapshot
    channel = declared(snapshot, name)
    return jsonify(
        next(
            render.plain(one) for one in channel_states(snapshot, dependencies().repository) if one.name == channel.name
        )
    )


@blueprint.put("/v1/channels/<name>")
def moved(name: str) -> Response:
    """Let the channel point to another image: written into the store, in force within a second."""
    query.only(())
    mine, wanted = dependencies(), _wanted()
    place = declared_at(mine.inventory, "channel", name) or str(mine.inventory)
    state = move(mine.live.view().snapshot, mine.repository, mine.repository_writer, name, wanted, place)
    fields = {"operator": operator().fingerprint, "peer": request.remote_addr, "channel": name, "image": state.image}
    log.info("channel moved", extra={"fields": fields})
    return jsonify(render.plain(state))


def _wanted() -> str:
    try:
        return Wanted.model_validate(request.get_json()).image
    except ValidationError as error:
        fault = first_fault(error)
        raise BadClaimError(
            f'{fault.key or "the body"}: {fault.message}; expected {{"image": "<digest, prefix or name>"}}'
        ) from None
