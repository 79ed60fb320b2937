"""Log lines: one event a line, nothing that a terminal would obey."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netboot import logs
from netboot.cli.serve import logging_as
from netboot.logs import Lines, Log, Trouble, value
from netboot.process import Kind
from tests.processes import environment
from tests.sites import make_site


def line(message: str, *arguments: object, form: Literal["logfmt", "json"] = "logfmt", **extra: object) -> str:
    record = logging.LogRecord("n", logging.WARNING, "f", 1, message, arguments, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    record.__dict__.update(extra)
    return Lines("boot-0", form).format(record)


def test_a_line() -> None:
    assert line("script for %s", "gpu-001") == (
        'time=2023-11-14T22:13:20.250Z level=warning process=boot-0 msg="script for gpu-001"'
    )


def test_fields_follow_the_message() -> None:
    assert line("moved", fields={"channel": "stable", "by": "a b"}).endswith('msg=moved channel=stable by="a b"')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ("plain-1.2:3/x@y", "plain-1.2:3/x@y"),
        ("two words", '"two words"'),
        ('say "x" \\', '"say \\"x\\" \\\\"'),
        ("a\nlevel=error", '"a\\nlevel=error"'),
        ("\x1b[31mred\x07\x00", '"\\u001b[31mred\\u0007\\u0000"'),
        ("\x7f\x9b", '"\\u007f\\u009b"'),
        ("\ud800", '"\\ud800"'),
        ("a=b", '"a=b"'),
        ("Grüße", '"Grüße"'),
        ("\u202eevil\u2028", '"\\u202eevil\\u2028"'),
    ],
)
def test_values_are_quoted_and_escaped(text: str, written: str) -> None:
    assert value(text) == written


def test_a_long_value_is_cut_in_the_middle() -> None:
    assert len(value("x" * 100_000)) < 2_100


def test_a_traceback_stays_on_its_line() -> None:
    def fails() -> None:
        raise RuntimeError("broken\nin two")

    try:
        fails()
    except RuntimeError:
        found = line("failed", exc_info=sys.exc_info())
    assert "\n" not in found
    assert 'RuntimeError: broken\\nin two\\n"' in found


def test_what_lasts_is_said_when_it_begins_changes_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble(logging.getLogger("here"), "the file cannot be written", "the file is written again")
    for problem in (None, "full", "full", "gone", "gone", None, None, "full"):
        trouble.note(problem)
        assert trouble.problem == problem
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "the file cannot be written: full"),
        ("WARNING", "the file cannot be written: gone"),
        ("WARNING", "the file is written again"),
        ("WARNING", "the file cannot be written: full"),
    ]


def test_a_line_of_json() -> None:
    fields = {"machine": "gpu-001", "taken": 3, "ok": True, "share": 0.5, "never": float("nan"), "none": None}
    assert json.loads(line("script for %s", "gpu-001", form="json", fields=fields)) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "process": "boot-0",
        "msg": "script for gpu-001",
        "machine": "gpu-001",
        "taken": 3,
        "ok": True,
        "share": 0.5,
        "never": "nan",
        "none": None,
    }


ANY = st.text(st.characters(codec=None)) | st.integers() | st.floats() | st.booleans() | st.none() | st.binary()


@example("\ud800 \x7f \x9b", {"a": "\udfff\x7f", "msg": "mine"})
@given(st.text(st.characters(codec=None)), st.dictionaries(st.sampled_from(["a", "boot", "msg", "level"]), ANY))
def test_whatever_is_logged_is_one_line_that_a_terminal_shows_and_a_reader_reads(
    message: str, fields: dict[str, object]
) -> None:
    for form in ("logfmt", "json"):
        text = line("%s", message, form=form, fields=fields)
        assert text.isprintable()
    read = json.loads(text)
    assert (read["level"], read["process"]) == ("warning", "boot-0")
    json.dumps(read, ensure_ascii=False).encode()  # and no half of a pair
    if len(message) <= logs.LONGEST:
        assert read["msg"] == message.encode("utf-8", "backslashreplace").decode()


def test_what_is_said_inside_has_what_it_is_about_and_nothing_takes_the_place_of_who_says_it() -> None:
    with logs.about(boot="b1"), logs.about(machine="gpu-001", process="mine"):
        said = line("moved", fields={"machine": "gpu-002", "msg": "mine"})
    assert said.endswith("process=boot-0 msg=moved boot=b1 machine=gpu-002")
    assert line("moved").endswith("process=boot-0 msg=moved")


def test_more_is_learned_of_a_request_and_the_next_one_begins_anew() -> None:
    logs.begin(request_id="r1")
    logs.learn(machine="gpu-001")
    assert line("moved").endswith("msg=moved request_id=r1 machine=gpu-001")
    logs.begin(request_id="r2")
    assert line("moved").endswith("msg=moved request_id=r2")
    logs.begin()
    logs.learn(machine="gpu-001")
    assert line("moved").endswith("msg=moved")


@pytest.mark.parametrize("given", [None, "", "-x", "a b", "a\nb", "x" * 65, "grün", "a=b"])
def test_an_id_that_is_not_well_formed_is_not_taken_over(given: str | None) -> None:
    made = logs.request_id(given)
    assert made != given
    assert logs.request_id(made) == made


def test_every_kind_of_process_may_have_a_level_of_its_own() -> None:
    assert set(get_args(logs.Speaker)) == {"supervisor", *get_args(Kind)}
    log = Log(level="warning", levels={"join": "debug"})
    assert [log.level_of(kind) for kind in ("join", "boot")] == [logging.DEBUG, logging.WARNING]


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    config = config.model_copy(update={"log": Log(level="error", levels={"join": "debug"})})
    assert logging_as(config, None, None) == config
    assert logging_as(config, "json", "info").log == Log(format="json")


def test_libraries_say_nothing_of_what_they_send_and_get() -> None:
    program = (
        "import logging; from netboot import logs; logs.set_up('join-0', 'join', logs.Log(level='debug'));"
        "logging.getLogger('kubernetes.client.rest').debug('response body: a token');"
        "logging.getLogger('netboot.join').debug('ours')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    assert [each.partition(" level=")[2] for each in done.stderr.splitlines()] == ["debug process=join-0 msg=ours"]


def test_a_thread_that_ends_by_a_defect_is_one_line_too() -> None:
    program = (
        "import threading; from netboot import logs; logs.set_up('join-0', 'join', logs.Log(format='json'));"
        "thread = threading.Thread(target=lambda: int('\\x1b[31m'), name='renewals'); thread.start(); thread.join()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True, timeout=60
    )
    [said] = done.stderr.splitlines()
    document = json.loads(said)
    assert (document["level"], document["msg"]) == ("error", "the thread renewals ended by a defect")
    assert "ValueError: invalid literal for int()" in document["error"]
