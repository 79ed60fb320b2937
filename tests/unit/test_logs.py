"""Log lines: one event a line, nothing that a terminal would obey."""

import logging
import sys

import pytest

from netboot.logs import Lines, Trouble, value


def line(message: str, *arguments: object, **extra: object) -> str:
    record = logging.LogRecord("n", logging.WARNING, "f", 1, message, arguments, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    record.__dict__.update(extra)
    return Lines("boot-0").format(record)


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
