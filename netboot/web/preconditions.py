"""What a writer saw, as a tag: `ETag`, `If-None-Match` of who looks again, `If-Match` of who acts (RFC 9110).

It is of what somebody would decide by (`netboot.web.etags` says what that is of each thing), and the same for as long
as that is: what moves by itself, a boot, an age, a count, is not in it.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

from flask import Response, request

from images.errors import ImageError
from images.values.strict import FaultsError
from netboot.lifecycle.errors import (
    BadClaimError,
    LifecycleError,
    NoSuchMachineError,
    NotDeclaredError,
    OverloadedError,
    PreconditionFailedError,
)
from netboot.web import inputs
from netboot.web.binding import Around, View, plain, shown

Json = Mapping[str, Any]
LONGEST = 1_000
"""Characters of a header with tags."""
PATTERN = r'^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$'
"""What `If-Match` and `If-None-Match` may be: RFC 9110, 13.1, without bytes beyond ASCII, which no tag of ours has."""
_HEADER = re.compile(PATTERN[:-1] + r"\Z")
_ONE = re.compile(r'(?:W/)?"[!#-~]*"')
WAIT_SECONDS = 5
_PLACES = tuple(threading.Lock() for _ in range(64))
"""Acts on one thing are done one after the other: what one saw, no other changes until it has acted."""
OF_MACHINE, OF_CHANNEL = "machine", "channel"
"""Kinds of things that acts name in their bodies, too."""


class Tag(NamedTuple):
    """Of one kind of thing. `view`: which shows it; `only`: the fields that count, all where it is empty; `without`:
    those that do not; `within`: field → fields of that, or of each of its members, that do not."""

    kind: str
    view: View
    only: Collection[str] = ()
    without: Collection[str] = ()
    within: Mapping[str, Collection[str]] = {}
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    """In which acts on it are done, the look at `If-Match` included, where other processes act on it too."""

    def of(self, answer: Json) -> str:
        """The tag of an answer, as the header has it. A list that is null could not be told, which is seen, too."""
        seen = {name: value for name, value in answer.items() if not self.only or name in self.only}
        seen = {name: value for name, value in seen.items() if name not in self.without}
        for name, apart in self.within.items():
            seen[name] = _less(seen.get(name), apart)
        text = json.dumps([self.kind, seen], sort_keys=True)
        return _tag(text.encode())


def _tag(seen: bytes) -> str:
    return f'"{hashlib.sha256(seen).hexdigest()[:32]}"'


def _less(value: Any, apart: Collection[str]) -> Any:
    if isinstance(value, list):
        return [_less(each, apart) for each in value]
    return {key: value[key] for key in value.keys() - set(apart)} if isinstance(value, dict) else value


def looked_at(tag: Tag | None) -> Around:
    """Around a view that shows the thing: its tag, or 304 where who looks again has that one. None: there is nothing
    about it that somebody acts on, and the tag is of all of the answer, as it is."""

    def around(call: Callable[[], Any], _path: Mapping[str, Any]) -> Response:
        known = _tags("If-None-Match")
        response = shown(call())
        now = tag.of(json.loads(response.get_data())) if tag is not None else _tag(response.get_data())
        if known is not None and ("*" in known or now in {each.removeprefix("W/") for each in known}):
            response = Response(status=304)
            del response.headers["Content-Type"]
        response.headers["ETag"] = now
        if tag is not None:
            response.headers["Cache-Control"] = (
                "no-store"  # not all of the answer counts: nothing on the way may give it
            )
        return response

    return around


def acted_on(tags: Collection[Tag], needs: Collection[str] = (), named: str = "") -> Around:
    """Around an act: it is not begun where `If-Match` has none of what these things' tags are now, and its answer has
    what the tag is then. `needs`: the headers of which it wants one: `If-None-Match: *`, too, where it may make what is
    not there; `named`: the field of the body that names the thing, where the path does not."""

    def around(call: Callable[[], Any], path: Mapping[str, Any]) -> Response:
        new, wanted = _new(needs), _tags("If-Match")
        if wanted is not None and not tags:
            raise BadClaimError("nothing that this acts on has a tag: send it without", field="If-Match")
        if needs and (new + (wanted is not None)) != 1:
            raise BadClaimError(f"send {' or '.join(map(_NEEDED.__getitem__, needs))}", field="If-Match")
        first = next(iter(tags), None)
        path = {"name": inputs.sent()[named]} if named else path
        things = [(first.kind, *path.values())] if first is not None else []
        with alone(things), first.alone() if first is not None else nullcontext():
            of = first
            if new:
                _absent(tags, path)
            elif wanted is not None:
                of = _fit(wanted, tags, path)
            response = shown(call())
            if of is not None and response.status_code < 300 and (now := _now(of, path)) is not None:
                response.headers["ETag"] = now
            return response

    return around


def _now(tag: Tag, path: Mapping[str, Any]) -> str | None:
    """The thing's tag once it was acted on, before anybody else does; None: it is gone, or cannot be told. The act is
    done, whatever comes of this."""
    try:
        return tag.of(plain(tag.view(**path)))
    except (LifecycleError, ImageError, FaultsError):
        return None


_NEEDED = {"If-Match": "If-Match with the ETag of what is there", "If-None-Match": "If-None-Match: * where nothing is"}


def _new(needs: Collection[str]) -> bool:
    """Whether nothing may be there yet."""
    said = request.headers.get("If-None-Match")
    if said is not None and "If-None-Match" not in needs:
        raise BadClaimError("is for looking: an act takes If-Match", field="If-None-Match")
    if said not in (None, "*"):
        raise BadClaimError("must be * with an act: nothing may be there yet", field="If-None-Match")
    return said is not None


def _absent(tags: Collection[Tag], path: Mapping[str, Any]) -> None:
    for tag in tags:
        try:
            tag.view(**path)
        except (NoSuchMachineError, NotDeclaredError):
            continue
        raise PreconditionFailedError("it is there already")


def _fit(wanted: Collection[str], tags: Collection[Tag], path: Mapping[str, Any]) -> Tag:
    """Which of them has a tag that is wanted."""
    for tag in tags:
        now = tag.of(plain(tag.view(**path)))  # 404, where there is nothing
        if "*" in wanted or now in wanted:
            return tag
    raise PreconditionFailedError(f"it is not (any more) what {', '.join(sorted(wanted))[:100]} was given for")


@contextmanager
def alone(things: Iterable[tuple[object, ...]]) -> Iterator[None]:
    """While no other act does anything to these: each a kind, and what names it. Not within another `alone`, for all
    that one act needs is taken in one order.

    Raises:
        OverloadedError: another act does, and goes on doing.
    """
    with ExitStack() as held:
        for number in sorted({hash(thing) % len(_PLACES) for thing in things}):
            if not _PLACES[number].acquire(timeout=WAIT_SECONDS):
                raise OverloadedError("another act on it is under way")
            held.callback(_PLACES[number].release)
        yield


def _tags(header: str) -> set[str] | None:
    """Those of a header, or `*`; None: it is not there.

    Raises:
        BadClaimError: it is none.
    """
    text = request.headers.get(header)
    if text is None:
        return None
    if len(text) > LONGEST or not _HEADER.match(text):
        raise BadClaimError(
            'must be tags in quotes, as an ETag has them ("…"), with commas between, or *', field=header
        )
    return {"*"} if text == "*" else set(_ONE.findall(text))
