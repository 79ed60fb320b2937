"""Consoles: what is kept of them, and how they are waited for."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import DeadlineError, EndedError
from lab.output_log import OutputLog


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[int, OutputLog]]:
    """The writing end of a console, and its log."""
    reading, writing = os.pipe()
    log = OutputLog("console", tmp_path / "logs" / "console.log", lambda: os.read(reading, 4096))
    yield writing, log
    os.close(writing)
    log.join()
    os.close(reading)


def test_every_line_is_kept_with_its_time_and_without_control_characters(pipe: tuple[int, OutputLog]) -> None:
    writing, log = pipe
    parts = (
        (b"\x1b[2J\x1b[01;01Hiss\x1b[0", "iss"),
        (b";1mued\r\nseco\xc3", "seco"),
        (b"\xb6nd\r\nunfinished\x1b", "unfinished"),
    )
    for part, seen in parts:
        os.write(writing, part)
        log.wait_for(f"{seen}$", 60)
    assert log.text == "issued\nsecoönd\nunfinished"
    lines = log.path.read_text().splitlines()
    assert [re.sub(r"^\[ +\d+\.\d{3}\] ", "", line) for line in lines] == ["issued", "secoönd", "unfinished"]


def test_what_is_waited_for_may_come_in_pieces_and_may_be_over_already(pipe: tuple[int, OutputLog]) -> None:
    writing, log = pipe
    os.write(writing, b"node-1 lo")
    log.wait_for("node-1", 60)
    os.write(writing, b"gin: ")
    assert log.wait_for(r"(\S+) login:", 60)[1] == "node-1"
    assert log.wait_for(r"(\S+) login:", 60)[1] == "node-1"
    with pytest.raises(DeadlineError):
        log.wait_for("login:", 0, after=len(log.text))


def test_a_deadline_shows_what_was_waited_for_and_the_end_of_the_log(pipe: tuple[int, OutputLog]) -> None:
    writing, log = pipe
    os.write(writing, b"Kernel panic\n\n")
    log.wait_for("panic\n", 60)
    with pytest.raises(DeadlineError) as late:
        log.wait_for("login:", 0)
    assert str(late.value) == (f"console did not say within 0 s: login:\nthe end of {log.path}:\nKernel panic")


def test_a_source_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    answers = iter([b"bye\n", b""])
    log = OutputLog("console", tmp_path / "console.log", lambda: next(answers))
    with pytest.raises(EndedError) as ended:
        log.wait_for("login:", 60)
    assert str(ended.value) == (f"console ended without saying: login:\nthe end of {tmp_path}/console.log:\nbye")
