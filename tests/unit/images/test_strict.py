"""Strict YAML: every fault at once, each with its line and remedy."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from images.values.strict import MOST_BYTES, FaultsError, Strict, check, load, parse


class Disk(Strict):
    size: int = Field(ge=1)
    kind: str = "nvme"


class Server(Strict):
    name: str
    cores: int
    disks: tuple[Disk, ...] = ()


FIVE = """\
nmae: alpha
cores: many
disks:
  - size: 0
  - sise: 4
    size: 4
"""


def test_five_mistakes_are_five_faults() -> None:
    with pytest.raises(FaultsError) as caught:
        check(parse(FIVE, "server.yaml"), Server)
    assert str(caught.value).splitlines() == [
        "server.yaml:1: name: this key is required",
        "server.yaml:1: nmae: unknown key; did you mean 'name'?",
        "server.yaml:2: cores: must be a whole number",
        "server.yaml:4: disks[0].size: must be 1 at least",
        "server.yaml:5: disks[1].sise: unknown key; did you mean 'size'?",
    ]


def test_an_unknown_key_like_no_other_lists_the_valid_ones() -> None:
    with pytest.raises(FaultsError) as caught:
        check(parse("name: a\ncores: 1\nzzzzzz: 2\n", "s.yaml"), Server)
    assert str(caught.value) == "s.yaml:3: zzzzzz: unknown key; valid keys: cores, disks, name"


class Rack(Strict):
    disks: tuple[Disk, ...] = Field(min_length=1)
    names: dict[str, int] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("disks: 7\n", ["r.yaml:1: disks: must be a list"]),
        ("disks: []\n", ["r.yaml:1: disks: must have 1 entry at least, and has 0"]),
        ("disks: [{size: 0}]\n", ["r.yaml:1: disks[0].size: must be 1 at least"]),
        ("disks: [{size: 1}]\nnames: [a]\n", ["r.yaml:2: names: must be keys with values"]),
        ("disks: [a]\n", ["r.yaml:1: disks[0]: must be keys with values"]),
    ],
)
def test_faults_are_about_what_was_written(text: str, faults: list[str]) -> None:
    """YAML has no tuples, and a list whose only entry is wrong is not too short besides."""
    with pytest.raises(FaultsError) as caught:
        check(parse(text, "r.yaml"), Rack)
    assert str(caught.value).splitlines() == faults


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b\n", "f.yaml:2: name: this key is here twice"),
        ("name: [a\n", "f.yaml:1: not valid YAML: did not find expected ',' or ']'"),
        (
            "a:\n\tb: 1\n",
            "f.yaml:2: not valid YAML: a tab stands here: YAML is indented by spaces, write some in its place",
        ),
        ("a: @b\n", "f.yaml:1: not valid YAML: '@' begins no value: put the value into quotes"),
        ("a\x00b", "f.yaml:1: not valid YAML: unacceptable character #x0000: control characters are not allowed"),
        ("- a\n", "f.yaml:1: the file must hold a mapping of keys to values"),
        ("!!python/object/apply:os.getcwd []", None),
        ("a: &a [*a]\n", None),
        ("name: a\n---\nname: b\n", None),
    ],
)
def test_what_is_not_a_document_says_why(text: str, message: str | None) -> None:
    with pytest.raises(FaultsError) as caught:
        check(parse(text, "f.yaml"), Server)
    if message is not None:
        assert str(caught.value) == message


def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(FaultsError) as caught:
        load(tmp_path / "none.yaml", Server)
    assert str(caught.value) == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"


def test_what_is_no_regular_file_is_neither_waited_for_nor_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "large.yaml").touch()
    os.truncate(tmp_path / "large.yaml", MOST_BYTES + 1)
    other = "it is a pipe or a device: put a regular file in its place"
    for name, why in {
        "fifo": other,
        "zero": other,
        "folder": "Is a directory",
        "large": "it has more than 64 MiB: divide it, or put right what writes it",
    }.items():
        with pytest.raises(FaultsError) as caught:
            load(tmp_path / f"{name}.yaml", Server)
        assert str(caught.value) == f"{tmp_path}/{name}.yaml: cannot be read: {why}"


@given(st.text(max_size=200))
def test_any_text_is_a_value_or_faults(text: str) -> None:
    try:
        check(parse(text, "f"), Server)
    except FaultsError as error:
        assert error.faults


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
)


@given(VALUES)
def test_any_structure_is_a_value_or_faults(value: Any) -> None:
    try:
        check(parse(yaml.safe_dump(value), "f"), Server)
    except FaultsError as error:
        assert all(fault.line >= 1 for fault in error.faults)
