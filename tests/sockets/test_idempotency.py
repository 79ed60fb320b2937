"""`Idempotency-Key` of the management API: what is asked for again is not done again, and is answered as the first
time."""

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.roles import Role
from netboot.stores import idempotency
from netboot.stores.idempotency import SqliteIdempotency
from tests.sites import INVENTORY, add_image
from tests.sockets.api import NOW, Api, given
from tests.sockets.served import runner, served

HOLD, HELD = "/v1/machines/gpu-001/hold", {"reason": "a fan"}
KEY = '"5f2c-41d0"'
NONCE = INVENTORY.replace("serial: S2}", "serial: S2}, identity: nonce")


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=NONCE)


def act(api: Api, path: str, body: Any, key: str | None = KEY, token: str | None = None, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else api.authorised
    headers = headers | ({"Idempotency-Key": key} if key is not None else {}) | more.pop("headers", {})
    return api.client.post(path, json=body, headers=headers, **more)


def acts(api: Api) -> list[tuple[str, str]]:
    """What was done and refused, the newest first."""
    return [(each["act"], each["result"]) for each in api.get("/v1/audit").json["audit"]]


def no(answer: Any) -> tuple[int, str, str]:
    return answer.status_code, answer.json["code"], answer.json["detail"]


def test_what_is_asked_for_again_is_answered_as_the_first_time_and_done_once(api: Api) -> None:
    first = act(api, HOLD, HELD)
    assert (first.status_code, first.json["did"]) == (200, "put-on")
    assert "Idempotent-Replayed" not in first.headers
    assert act(api, "/v1/machines/gpu-001/unhold", {}, key=None).json["did"] == "taken-off"
    again = act(api, HOLD, HELD)
    assert (again.status_code, again.data, again.content_type) == (200, first.data, "application/json")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert api.get("/v1/machines/gpu-001/intents").json["intents"] == []
    assert acts(api) == [("unhold", "done"), ("hold", "done")]
    assert act(api, HOLD, HELD, key='"another"').json["did"] == "put-on"


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (HOLD, {"json": {"reason": "another"}}),
        ("/v1/machines/gpu-002/hold", {}),
        ("/v1/machines/gpu-001/quarantine", {}),
        (HOLD, {"headers": {"If-Match": "*"}}),
        (HOLD, {"query_string": "a=b"}),
    ],
)
def test_the_same_key_with_another_request_is_refused(api: Api, path: str, more: dict[str, Any]) -> None:
    assert act(api, HOLD, HELD).status_code == 200
    body = more.pop("json", HELD)
    assert no(act(api, path, body, **more)) == (
        422,
        "idempotency-key-reused",
        "with this key something else was asked for before",
    )


def test_a_key_is_its_token_s(api: Api) -> None:
    other = given(api, "bob", Role.OPERATOR)
    assert act(api, HOLD, HELD).json["did"] == "put-on"
    assert act(api, HOLD, HELD, token=other).json["did"] == ""
    viewer = given(api, "wall", Role.VIEWER)
    assert act(api, HOLD, HELD, token=viewer).status_code == 403


def test_what_was_refused_is_looked_at_again(api: Api) -> None:
    assert act(api, "/v1/machines/gpu-001/retire", {}, key=None).status_code == 200
    assert no(act(api, HOLD, HELD))[:2] == (409, "act-refused")
    assert act(api, "/v1/machines/gpu-001/approve", {"ek_sha256": None}, key=None).status_code == 200
    assert act(api, HOLD, HELD).json["did"] == "put-on"
    assert no(act(api, HOLD, {"reason": 7}, key='"bad"'))[:2] == (400, "bad-request")
    assert act(api, HOLD, HELD, key='"bad"').status_code == 200


def test_the_first_is_still_being_done(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    order, said = api.intents.order, []

    def slow(*arguments: Any) -> Any:
        said.append(act(api, HOLD, HELD))
        return order(*arguments)

    monkeypatch.setattr(api.intents, "order", slow)
    assert act(api, HOLD, HELD).json["did"] == "put-on"
    assert no(said[0]) == (409, "still-running", "the first request with this key is still being done")


def test_nobody_knows_what_came_of_what_a_process_began_that_is_gone(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # it ends before it notes anything
        patch.setattr(SqliteIdempotency, "keep", _stop)
        patch.setattr(SqliteIdempotency, "lose", _stop)
        assert act(api, HOLD, HELD).json["did"] == "put-on"
    assert act(api, "/v1/machines/gpu-001/unhold", {}, key=None).json["did"] == "taken-off"
    api.client.application.extensions["netboot"].idempotency.owner = "the next"
    answer = act(api, HOLD, HELD)
    assert no(answer) == (
        409,
        "outcome-unknown",
        "it was begun with this key, and nobody knows whether it was done",
    )
    assert answer.json["remedy"] == "look whether it was, then ask with a new key where it is still wanted"
    assert api.get("/v1/machines/gpu-001/intents").json["intents"] == []


def _stop(*_: object) -> None:
    raise StateUnavailableError("no room")


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_nor_of_what_broke_in_the_middle(api: Api, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def broken(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(api.intents, "order", broken)
        with suppress(SystemExit):
            assert act(api, HOLD, HELD).status_code == 500
    assert no(act(api, HOLD, HELD))[:2] == (409, "outcome-unknown")


def test_a_secret_is_not_kept(api: Api) -> None:
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    key = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(serialization.Encoding.DER, info)
    body = {"machine": "gpu-002", "spki": base64.b64encode(key).decode()}
    made = act(api, "/v1/tokens", body)
    assert made.status_code == 201
    again = act(api, "/v1/tokens", body)
    assert no(again) == (409, "answer-not-kept", "it was done (201), and what was answered is not kept")
    assert again.json["remedy"].endswith(
        "see `netboot token list`, take it back with `netboot token revoke`, and ask for another with a new key"
    )
    secret = made.json["token"].partition(".")[2].encode()
    assert not any(secret in path.read_bytes() for path in api.config.data.rglob("audit.db*"))
    assert acts(api)[-1] == ("token", "done")


def test_what_is_no_key_and_where_none_can_be_noted_nothing_is_done(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in ("5f2c", '""', '"a b"', '"a\\""', '"ä"', '"a", "b"', f'"{"a" * 129}"'):
        assert act(api, HOLD, HELD, key=bad).json["field"] == "Idempotency-Key", bad
    monkeypatch.setattr(SqliteIdempotency, "begin", _stop)
    assert no(act(api, HOLD, HELD))[:2] == (503, "state-unavailable")
    assert api.get("/v1/machines/gpu-001/intents").json["intents"] == []


def test_a_long_list_takes_a_key_too(api: Api) -> None:
    rows = f"machine,ek_sha256\ngpu-001,{'a1' * 32}\n" + "\n" * 70_000
    for replayed in (None, "true"):
        headers = api.authorised | {"Idempotency-Key": KEY, "Content-Type": "text/csv"}
        answer = api.client.post("/v1/enrolments", data=rows.encode(), headers=headers)
        assert (answer.status_code, answer.get_json()["enrolled"]) == (200, ["gpu-001"])
        assert answer.headers.get("Idempotent-Replayed") == replayed


def test_what_is_kept_is_bounded_in_time_number_and_bytes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SqliteIdempotency(api.config.data / "audit.db", "me")
    day = 24 * 3_600_000
    assert kept.begin("a", "old", b"1", NOW) is None
    assert kept.begin("a", "old", b"1", NOW + day - 1) == (b"1", "me", None, None)
    assert kept.begin("a", "old", b"1", NOW + day) is None
    monkeypatch.setattr(idempotency, "MOST_KEYS", 3)
    monkeypatch.setattr(idempotency, "MOST_BYTES", 10)
    monkeypatch.setattr(idempotency, "LARGEST", 8)
    for number in range(4):
        kept.begin("a", str(number), b"1", NOW + 2 * day + number)
        kept.keep("a", str(number), 200, b"12345678")
    assert kept.begin("a", "large", b"1", NOW + 2 * day + 5) is None
    kept.keep("a", "large", 200, b"123456789")
    now = NOW + 2 * day + 6
    assert [kept.begin("a", key, b"1", now) for key in ("2", "3", "large")] == [
        (b"1", "me", 200, None),
        (b"1", "me", 200, b"12345678"),
        (b"1", "me", 200, None),
    ]
    assert kept.begin("a", "1", b"1", now) is None


def test_what_is_being_done_is_not_pushed_out(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_KEYS", 3)
    kept, before = (SqliteIdempotency(api.config.data / "audit.db", owner) for owner in ("me", "who was here before"))
    before.begin("a", "gone", b"1", NOW)
    kept.begin("a", "running", b"1", NOW + 1)
    for number in range(4):
        kept.begin("b", str(number), b"1", NOW + 2 + number)
        kept.keep("b", str(number), 200, b"{}")
    assert kept.begin("a", "running", b"1", NOW + 9) == (b"1", "me", None, None)
    assert kept.begin("a", "gone", b"1", NOW + 9) is None


def test_a_dry_run_takes_no_key(api: Api) -> None:
    for reason in ("one", "two"):
        answer = act(api, HOLD, {"reason": reason, "dry_run": True})
        assert (answer.status_code, answer.json["concerned"][0]["reason"]) == (200, reason)
        assert "Idempotent-Replayed" not in answer.headers
    assert act(api, HOLD, HELD).json["dry_run"] is False


def whole(client: socket.socket) -> bytes:
    """A request, with its body."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += client.recv(65536)
    head, _, body = read.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
    while len(body) < length:
        body += client.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def dropping(address: str, most: int) -> Iterator[str]:
    """A way to the service that loses so many answers, once the service has given them."""
    listener = socket.create_server(("127.0.0.1", 0))
    target = urlsplit(address)

    def serve() -> None:
        for number in range(most + 1):
            with suppress(OSError), listener.accept()[0] as client:
                with socket.create_connection((str(target.hostname), target.port or 0)) as service:
                    service.sendall(whole(client).replace(b"keep-alive", b"close", 1))
                    answer = b"".join(iter(lambda: service.recv(65536), b""))
                if number >= most:
                    client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for another
        thread.join()
        listener.close()


@pytest.mark.parametrize(("lost", "status"), [(1, 0), (2, 5)])
def test_the_command_line_asks_again_where_the_answer_was_lost(
    api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lost: int, status: int
) -> None:
    with served(api) as address, dropping(address, lost) as way:
        ran = runner(way, api, capsys, monkeypatch)("machine", "hold", "gpu-001", "--reason", "a fan")
    assert ran.status == status, ran.err
    assert "already" not in ran.out
    assert acts(api) == [("hold", "done")]


WRITTEN = "it was written, and what it came to cannot be told: "
AGAIN = (409, "outcome-unknown", "it was begun with this key, and nobody knows whether it was done")


def fails_after(of: Any, write: str, read: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once `of` has written, `read` cannot be read."""
    written = getattr(of, write)

    def broken(*_: object, **__: object) -> None:
        raise StateUnavailableError("a disk")

    def then_broken(*arguments: Any, **more: Any) -> Any:
        answer = written(*arguments, **more)
        monkeypatch.setattr(read, name, broken)
        return answer

    monkeypatch.setattr(of, write, then_broken)


@pytest.mark.parametrize(
    ("path", "body", "of", "write", "read", "name", "done"),
    [
        ("/v1/freeze", {"reason": "x"}, "freezes", "put", "live", "view", "freeze"),
        ("/v1/machines/gpu-001/enroll", {}, "register", "apply", "register", "view", "enroll"),
        (HOLD, HELD, "intents", "order", "intents", "of", "hold"),
    ],
)
def test_what_was_written_is_never_called_not_done(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: Any,
    of: str,
    write: str,
    read: str,
    name: str,
    done: str,
) -> None:
    with monkeypatch.context() as patched:
        fails_after(getattr(api, of), write, getattr(api, read), name, patched)
        answer = act(api, path, body)
    assert no(answer) == (409, "outcome-unknown", f"{WRITTEN}the state cannot be read right now")
    assert acts(api) == [(done, "done")]
    assert no(act(api, path, body)) == AGAIN
    assert acts(api)[-1] == (done, "done")


def test_what_is_not_written_yet_is_asked_for_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        fails_after(api.intents, "of", api.intents, "order", patched)
        assert no(act(api, HOLD, HELD))[:2] == (503, "state-unavailable")
    assert act(api, HOLD, HELD).json["did"] == "put-on"


def test_a_channel_that_is_set_is_recorded_though_its_rollouts_cannot_be_ended(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = add_image(api.config)
    with monkeypatch.context() as patched:
        fails_after(api.rollouts, "under_way", api.rollouts, "release", patched)
        answer = api.client.put("/v1/channels/stable", json={"image": image}, headers=api.authorised)
    assert no(answer) == (409, "outcome-unknown", f"{WRITTEN}the state cannot be read right now")
    assert acts(api) == [("channel-set", "done")]
    assert api.get("/v1/channels/stable").json["image"] == image


def test_a_channel_whose_rollout_was_ended_is_done_in_part_where_the_store_is_busy(api: Api) -> None:
    """The key remembers that, and the audit has it; the same once more ends no second rollout."""
    first, second = (add_image(api.config, salt=salt) for salt in ("first", "second"))
    api.put("/v1/channels/stable", {"image": first})
    assert api.publisher.step()
    start = {"channel": "stable", "image": second, "on_next_boot": True, "any_kubelet": True}
    number = api.post("/v1/rollouts", start).json["number"]
    asked = {"image": second, "force": True, "reason": "at once"}

    def again() -> Any:
        return api.client.put("/v1/channels/stable", json=asked, headers=api.authorised | {"Idempotency-Key": KEY})

    with api.store.writing():
        answer = again()
    done = f"rollouts {number} of channel stable were ended"
    busy = answer.json["detail"].partition("; ")[2]
    assert no(answer) == (409, "done-in-part", f"{done}; {busy}")
    assert busy.startswith("the rest was not: ")
    assert "Retry-After" not in answer.headers
    replayed = again()
    assert (replayed.data, replayed.status_code, replayed.content_type) == (answer.data, 409, answer.content_type)
    record = api.get("/v1/audit").json["audit"][0]
    assert (record["act"], record["result"], record["reason"]) == ("channel-set", "done-in-part", "at once")
    assert (record["before"], record["after"]) == ({"image": first}, None)
    assert record["facts"] == {
        "channel": "stable",
        "image": second,
        "was": first,
        "ended_rollouts": [number],
        "done": done,
        "not_done": busy.removeprefix("the rest was not: "),
    }
    assert api.get("/v1/channels/stable").json["image"] == first


def test_a_busy_store_is_tried_again_where_nothing_was_done(api: Api) -> None:
    image = add_image(api.config)
    with api.store.writing():
        assert api.put("/v1/channels/stable", {"image": image}).status_code == 503
    assert api.put("/v1/channels/stable", {"image": image}).status_code == 200


def test_a_key_is_kept_though_the_clock_is_set_ahead_by_days(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    first = act(api, HOLD, HELD)
    with monkeypatch.context() as patched:
        patched.setattr("tests.sockets.api.Fixed.now_ms", lambda _: NOW + 3 * idempotency.KEPT_MS)
        again = act(api, HOLD, HELD)
    assert (again.data, again.headers["Idempotent-Replayed"]) == (first.data, "true")
