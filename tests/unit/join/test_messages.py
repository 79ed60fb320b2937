"""Whatever the bytes, a message or our own error; and what hello and attest say to any of it is ours too."""

import base64
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.errors import JoinError
from netboot.join.hello import hello
from netboot.lifecycle.errors import BadClaimError, CannotTellError
from tests.joining import PEER, Stage, boot_id, dumps, pinned
from tests.soft_tpm import Machine, text

MACHINE = Machine(boot_id("gpu-001"))
STAGE = Stage((pinned(MACHINE),))
OURS = (JoinError, BadClaimError, CannotTellError)
QUICK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
HELLO = MACHINE.hello()
ANSWER = STAGE.hello(MACHINE)
ATTEST = MACHINE.attest(ANSWER)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def heard(data: bytes) -> None:
    """Both readers, and what stands behind them."""
    kinds: Any = ((messages.Hello, hello), (messages.Attest, attest))
    for model, act in kinds:
        try:
            act(STAGE.exchange(), messages.read(data, model), PEER)
        except OURS as error:
            assert str(error).isprintable()
            assert len(str(error)) < 1000


def paths(value: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every field of a message."""
    if not isinstance(value, dict):
        return [at]
    return [at, *(path for name, inner in value.items() for path in paths(inner, (*at, name)))]


def put(body: Any, path: tuple[str, ...], value: Any) -> Any:
    """The body with another value at a field."""
    if not path:
        return value
    return {**body, path[0]: put(body[path[0]], path[1:], value)}


@given(st.binary(max_size=300))
@QUICK
def test_any_bytes(data: bytes) -> None:
    heard(data)


@given(JSON)
@QUICK
def test_any_json(value: Any) -> None:
    heard(json.dumps(value).encode())


@given(st.data(), st.sampled_from([HELLO, ATTEST]), JSON)
@QUICK
def test_any_field_replaced_by_anything(data: st.DataObject, body: Any, value: Any) -> None:
    heard(dumps(put(body, data.draw(st.sampled_from(paths(body))), value)))


@given(st.data(), st.sampled_from([HELLO, ATTEST]), st.binary(max_size=400))
@QUICK
def test_any_bytes_field_replaced_by_any_bytes(data: st.DataObject, body: Any, value: bytes) -> None:
    fields = [path for path in paths(body) if path and path[-1] in BYTES and at(body, path) is not None]
    heard(dumps(put(body, data.draw(st.sampled_from(fields)), text(value))))


@given(st.data(), st.sampled_from([HELLO, ATTEST]), st.integers(0, 7), st.integers(0, 10**6))
@QUICK
def test_any_bit_of_any_bytes_field_flipped(data: st.DataObject, body: Any, bit: int, place: int) -> None:
    fields = [path for path in paths(body) if path and path[-1] in BYTES and at(body, path) is not None]
    path = data.draw(st.sampled_from(fields))
    value = bytearray(base64.b64decode(at(body, path)))
    value[place % len(value)] ^= 1 << bit
    heard(dumps(put(body, path, text(bytes(value)))))


def test_a_message_nested_deeper_than_any_stack() -> None:
    heard(b"[" * 16_000)
    heard(b'{"a":' * 3_000)


BYTES = {"spki", "ek_public", "ak_public", "state", "proof", "secret", "quote", "signature"}


def at(body: Any, path: tuple[str, ...]) -> Any:
    """The value of a field."""
    for name in path:
        body = body[name]
    return body


def test_secrets_show_in_no_repr() -> None:
    message = messages.read(dumps(ATTEST), messages.Attest)
    assert message.tpm is not None
    assert repr(message.tpm.secret) not in repr(message)
