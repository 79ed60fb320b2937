"""What is said of a netboot.yaml that is not what the service runs by."""

from pathlib import Path

import pytest

from netboot.config import load_config
from netboot.supervise.changed import ChangedConfig

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


def test_a_change_is_said_with_its_keys_until_it_is_taken_back(file: Path) -> None:
    changed = ChangedConfig(file, load_config(file))
    assert changed.words() == ""
    write(file, TEXT + "# a comment\nlog: {level: debug}\n")
    assert changed.words() == ""
    write(file, TEXT + "minimum_epoch: 4\norigins: [http://rack1]\n")
    said = f"{file} was changed (minimum_epoch, origins), and the service runs by what it said at the start"
    assert changed.words() == said
    assert changed.words() == said
    write(file, TEXT)
    assert changed.words() == ""


def test_a_change_that_could_not_be_started_is_said_as_that(file: Path) -> None:
    changed = ChangedConfig(file, load_config(file))
    write(file, TEXT + "minimum_epochs: 4\n")
    words = f"{file} was changed and has faults, so the service would not start again: {file}:3: minimum_epochs: "
    assert changed.words() == f"{words}unknown key; did you mean 'minimum_epoch'?"
    file.unlink()
    assert changed.words().endswith(f"{file}: cannot be read: No such file or directory")
