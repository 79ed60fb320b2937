"""What a program writes of the inventory reads as what was given, and an edit changes one item and no other byte."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from images.values import strict
from netboot.machines.declared import KINDS, LISTS, items_of
from netboot.machines.written import as_written, is_json, text_of
from netboot.stores.inventory_files import InventoryFiles
from tests.sites import make_site

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["52:54:00:12:34:56", "0123", "no", "12e4", "22:00", "~", "", "- a", "a: b # c", "\r\n", "\u2028"]
    )
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
_NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?", fullmatch=True)
_ITEMS = st.builds(
    lambda name, more: {**more, "name": name},
    _NAMES,
    st.dictionaries(st.sampled_from(["channel", "origins", "topology", "description"]) | st.text(max_size=8), _VALUES),
)
_kinds = st.sampled_from(list(LISTS))
_quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def files(tmp_path: Path) -> Iterator[InventoryFiles]:
    yield InventoryFiles(make_site(tmp_path / "site").model_copy(update={"inventory_writable": True}))


def _written(kind: str, values: list[dict[str, Any]]) -> str:
    """What YAML has no words for is refused: keys that break lines as other scripts do, and nothing else."""
    try:
        return text_of(kind, *values)
    except strict.FaultsError:
        assert set(json.dumps(values, ensure_ascii=False)) & {"\x85", "\u2028", "\u2029"}
        reject()


def _read(path: Path, text: str) -> strict.Document:
    path.write_bytes(text.encode())
    return strict.read(path)


@_quickly
@given(_kinds, st.lists(_ITEMS, min_size=1, max_size=3))
def test_what_is_read_is_what_was_given(tmp_path: Path, kind: str, values: list[dict[str, Any]]) -> None:
    assert _read(tmp_path / "x.yaml", _written(kind, values)).value == {LISTS[kind]: values}
    assert all(map(is_json, values))


@_quickly
@given(st.data(), _kinds, st.lists(_ITEMS, min_size=1, max_size=4, unique_by=lambda item: item["name"]))
def test_an_edit_changes_one_item_and_no_other_byte(
    files: InventoryFiles, data: st.DataObject, kind: str, values: list[dict[str, Any]]
) -> None:
    path = files.folder / "import-0123456789ab.yaml"
    path.unlink(missing_ok=True)
    before = {each.name: each.read_bytes() for each in files.folder.glob("*.yaml")}
    document = _read(path, _written(kind, values))
    items = list(items_of(document))
    place = data.draw(st.integers(0, len(values) - 1))
    new = data.draw(st.none() | _ITEMS.map(lambda item: {**item, "name": values[place]["name"]}))
    assert files.kept_file(kind, items[place].name, items[place]) == ""
    if new is not None:
        _written(kind, [new])
    ((name, text),) = files.edit(kind, items[place].name, new, items[place]).items()
    head = f"{LISTS[kind]}:\n"
    parts = [_part(kind, each) if each is not None else "" for each in [*values[:place], new, *values[place + 1 :]]]
    assert (name, text) == (path.name, head + "".join(parts) if any(parts) else None)
    files.write({name: text})
    assert (path.read_text() if path.exists() else None) == text
    path.unlink(missing_ok=True)
    assert {each.name: each.read_bytes() for each in files.folder.glob("*.yaml")} == before


def _part(kind: str, value: dict[str, Any]) -> str:
    return as_written(kind, [value]).partition("\n")[2]


def test_keys_are_in_the_order_of_the_form_and_what_it_does_not_know_last() -> None:
    value = {"more": 1, "origins": [], "name": "r7", "topology": {}}
    assert text_of("rack", value) == "racks:\n- name: r7\n  origins: []\n  topology: {}\n  more: 1\n"
    assert [*KINDS.values()] == [*LISTS]


@pytest.mark.parametrize("value", [{1: "a"}, {"a": b"x"}, {"a": float("nan")}])
def test_what_json_has_no_words_for(value: dict[str, Any]) -> None:
    assert not is_json(value)


def test_what_yaml_has_no_words_for_is_a_fault() -> None:
    deep: Any = "a"
    for _ in range(60):
        deep = [deep]
    for value in ({"name": "a", "more": "\ud800"}, {"name": "a", "more": deep}, {"name": "a", "more": float("inf")}):
        with pytest.raises(strict.FaultsError):
            text_of("rack", value)
