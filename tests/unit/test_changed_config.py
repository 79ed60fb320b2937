"""What is said of a netboot.yaml that is not what the service runs by."""

import os
from pathlib import Path

import pytest

from images.values.flock import exclusive
from netboot.cli import reload
from netboot.cli.serve import logging_as
from netboot.config import Config, load_config
from netboot.supervise.changed import RunningConfig
from tests.commands import Run

TEXT = "site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "netboot.yaml"
    path.write_text(TEXT)
    return path


def write(file: Path, text: str) -> None:
    """As an editor does: another file in its place."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_a_change_is_said_with_its_keys_and_cure_until_it_is_taken_back(file: Path) -> None:
    changed = RunningConfig(file, load_config(file))
    assert changed.words() == ""
    write(file, TEXT + "# a comment\n")
    assert changed.words() == ""
    write(file, TEXT + "minimum_epoch: 4\norigins: [http://rack1]\ndata: elsewhere\n")
    said = f"{file} was changed since the service took it: `netboot config reload` takes minimum_epoch, origins; "
    assert changed.words() == f"{said}needs a restart: data"
    assert changed.words() == f"{said}needs a restart: data"
    write(file, TEXT)
    assert changed.words() == ""


def test_a_change_since_it_was_read_is_said_though_nobody_looked_before(file: Path) -> None:
    value = load_config(file)
    write(file, TEXT + "minimum_epoch: 4\n")
    said = f"{file} was changed since the service took it: `netboot config reload` takes minimum_epoch"
    assert RunningConfig(file, value).words() == said


def test_what_may_be_taken_is_taken_and_nothing_else(file: Path) -> None:
    running = RunningConfig(file, load_config(file))
    assert (running.reload(), running.taken, running.reloads) == (False, (), 1)
    write(file, TEXT + "minimum_epoch: 4\norigins: [http://rack1]\ndata: elsewhere\n")
    assert (running.reload(), running.taken, running.reloads) == (True, ("minimum_epoch", "origins"), 2)
    assert (running.value.minimum_epoch, running.value.origins) == (4, ("http://rack1",))
    assert running.value.data == file.parent / "data"
    assert running.words() == f"{file} was changed since the service took it: needs a restart: data"
    write(file, TEXT + "minimum_epochs: 5\n")
    assert (running.reload(), running.taken, running.value.minimum_epoch) == (False, (), 4)
    write(file, TEXT)
    assert (running.reload(), running.taken) == (True, ("minimum_epoch", "origins"))


def test_what_the_command_line_says_of_the_log_is_over_the_file(file: Path) -> None:
    running = RunningConfig(file, adapted(load_config(file)), adapted)
    write(file, TEXT + "log: {level: debug}\n")
    assert (running.words(), running.reload()) == ("", False)


def adapted(config: Config) -> Config:
    return logging_as(config, None, "error")


def test_a_change_that_could_not_be_started_is_said_as_that(file: Path) -> None:
    changed = RunningConfig(file, load_config(file))
    write(file, TEXT + "minimum_epochs: 4\n")
    words = f"{file} was changed and has faults, so the service would not start again: {file}:3: minimum_epochs: "
    assert changed.words() == f"{words}unknown key; did you mean 'minimum_epoch'?"
    file.unlink()
    assert changed.words().endswith(f"{file}: cannot be read: No such file or directory")


@pytest.mark.parametrize("pid", ["1", "0", "9" * 20])
def test_a_lock_that_names_another_s_process_has_no_signal_sent(
    file: Path, run: Run, monkeypatch: pytest.MonkeyPatch, pid: str
) -> None:
    lock = load_config(file).data / "lock"
    lock.parent.mkdir()
    sent = []
    monkeypatch.setattr(os, "kill", lambda *arguments: sent.append(arguments))
    monkeypatch.setattr(reload, "ANSWER_SECONDS", 0.0)
    with exclusive(lock, "data"):
        lock.write_text(pid)
        if os.getuid() == 0:
            os.chown(lock, 65534, 65534)
        ran = run("config", "reload", "--config", file)
    assert (ran.status, sent) == (4, [])
    assert ran.err.startswith(f"Error: {lock} names process {pid}, which is not there, or not its owner's (uid ")
