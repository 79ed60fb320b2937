"""What the service refuses of a value, as the command line says it: by the option's name, and as wrong usage."""

from pathlib import Path

import pytest

from netboot.join.enrolment import Act, Retire
from netboot.stores.audit import Record, SqliteAudit
from tests.commands import Run
from tests.sites import add_image
from tests.sockets.api import NOW, Api, of_alice


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = of_alice(Api(tmp_path))
    api.store.set_channel("stable", add_image(api.config))
    add_image(api.config, name="next", salt="2")
    assert api.publisher.step()
    return api


_HOLD = ("machine", "hold", "gpu-001", "--reason", "x", "--until")
_LINE, _LONG = "must be one line of printable text", "must have 500 characters at most"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*_HOLD, "2023-11-14T22:14:59"), "'--until': the end must be in the future, and within 366 days"),
        ((*_HOLD, "30s"), "'--until': must be 60 at least"),
        (
            ("machine", "accept", "gpu-001", "--reason", "x", "--until", "721h"),
            "'--until': the end must be in the future, and within 30 days",
        ),
        (("machine", "drain", "gpu-001", "--reason", "two\nlines"), f"'--reason': {_LINE}"),
        (("machine", "retire", "gpu-001", "--reason", "x" * 501), f"'--reason': {_LONG}"),
        (("machine", "retire", "gpu-001", "--reason", "ok\x1b]0;root\x07"), f"'--reason': {_LINE}"),
        (
            ("rollout", "start", "stable", "next", "--max-unavailable", "0"),
            "'--max-unavailable': must be a number of machines, like 3, or a share of them, like 5%",
        ),
        (("remedies", "pause", "--reason", ""), "'--reason': must not be empty"),
        (
            ("channel", "set", "stable", "Next"),
            "'IMAGE': has characters, or a form, that it may not have",
        ),
        (("freeze", "--reason", "x", "--until", "8785h"), "'--until': must be 31622400 at most"),
    ],
)
def test_by_the_name_that_was_typed(run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run(*words)
    lines = ran.err.splitlines()
    assert (ran.status, ran.out, lines[-1]) == (2, "", f"Error: Invalid value for {said}")
    assert lines[0].startswith(f"Usage: netboot {words[0]} ")


def test_a_list_of_keys_whose_reason_is_too_long(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "eks.csv"
    file.write_text("machine,ek_sha256\n")
    ran = run("machine", "enroll", "--csv", file, "--reason", "x" * 501)
    assert (ran.status, ran.err.splitlines()[-1]) == (
        2,
        "Error: Invalid value for '--reason': must have 500 characters at most",
    )


def test_what_was_written_down_with_control_characters_is_harmless_at_a_terminal(api: Api, run: Run) -> None:
    bad = "ok\x1b]0;root\x07\x1b[2J\u202e"
    api.register.apply([("gpu-001", Retire())], Act("olga", bad), NOW)  # as a netboot of before took it
    by = Record(
        at_ms=NOW, who="olga", role="operator", token="", peer="", request_id="", act="retire", machine="", reason=bad
    )
    SqliteAudit(api.config.data / "audit.db").write(by, refused=False)
    for words in (("machine", "events", "gpu-001"), ("audit",)):
        ran = run(*words)
        assert (ran.status, "ok?]0;root??[2J?" in ran.out) == (0, True), words
        assert "".join(ran.out.split("\n")).isprintable(), words
    refused = run("machine", "show", "\x1b[2J")
    assert (refused.status != 0, "\x1b" in refused.err + refused.out) == (True, False)


def test_programs_are_told_the_value_by_its_name_in_the_api(api: Api) -> None:
    answer = api.post("/v1/machines/gpu-001/hold", {"reason": "x", "until": "1970-01-01T00:00:00.001Z"})
    assert (answer.status_code, answer.json) == (
        400,
        {
            "type": "tag:netboot.dev,2026:problem/bad-request",
            "title": "what was sent cannot be read",
            "instance": answer.headers["X-Request-ID"],
            "status": 400,
            "code": "bad-request",
            "field": "until",
            "detail": "until: the end must be in the future, and within 366 days",
            "remedy": "correct the request",
        },
    )
    answer = api.post("/v1/rollouts", {"channel": "stable", "image": "next", "strategy": {"bake": -1}})
    assert answer.json["field"] == "strategy.bake"
    answer = api.post("/v1/machines/gpu-001/hold", {"reason": "x", "until": "1970-01-01T00:00:00.001Z", "seconds": 60})
    assert "field" not in answer.json


def test_a_value_that_no_option_says_is_named_as_the_service_does(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where service and command line are of two versions."""
    monkeypatch.setattr("netboot.cli.outcomes.SAID_BY", {})
    ran = run("machine", "list", "--field-selector", "rack")
    words = "fieldSelector: rack: a field is selected by = or !="
    assert (ran.status, ran.err) == (1, f"Error: {words}\nRemedy: correct the request\n")
