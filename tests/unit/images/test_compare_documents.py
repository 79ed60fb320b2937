"""Comparing listings, kernel configurations and modules: pure, and whatever they hold."""

import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from images.build.documents import compare, listing

PATHS = st.text("ab./", min_size=1, max_size=5).map(lambda text: "/" + text)
ENTRIES = st.fixed_dictionaries(
    {"kind": st.sampled_from(["file", "folder"]), "mode": st.sampled_from(["0644", "0755"]), "uid": st.just(0)},
    optional={"size": st.integers(0, 2), "sha256": st.sampled_from("ab"), "attributes": st.just({"a": "b"})},
)
TREES = st.dictionaries(PATHS, ENTRIES, max_size=12)


def stream(tree: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"path": path, **tree[path]} for path in sorted(tree, key=listing.order)]


@given(TREES, TREES)
def test_the_changes_turn_one_tree_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = list(compare.changes(iter(stream(old)), iter(stream(new))))
    made = {entry["path"]: entry for entry in stream(old)}
    for change in found:
        assert change.old == made.pop(change.path, None)
        if change.new is not None:
            made[change.path] = change.new
        assert bool(change.aspects) == (change.change == "changed")
    assert made == {entry["path"]: entry for entry in stream(new)}
    assert [change.path for change in found] == sorted({change.path for change in found}, key=listing.order)
    assert len(found) == sum(old.get(path) != new.get(path) for path in old.keys() | new.keys())


NAMES = st.text(string.ascii_uppercase, min_size=1, max_size=3).map(lambda name: f"CONFIG_{name}")


@given(st.dictionaries(NAMES, st.sampled_from(["y", "m", '"a=b"', "0x10"])), st.sets(NAMES))
def test_options_are_read_and_what_is_not_set_is_n(there: dict[str, str], unset: set[str]) -> None:
    text = "#\n# Linux\n#\n" + "".join(f"{name}={value}\n" for name, value in there.items())
    text += "".join(f"# {name} is not set\n" for name in unset - there.keys())
    assert compare.options(text) == there
    assert compare.options_changed(text, text) == {}
    assert compare.options_changed("", text) == {name: ("n", there[name]) for name in sorted(there)}


def test_modules_are_known_by_name_in_any_kernels_folder() -> None:
    paths = (
        "/usr/lib/modules/6.1/kernel/a-b.ko",
        "/usr/lib/modules/6.1/updates/dkms/c.ko.zst",
        "/lib/modules/6.1/kernel/d.ko.xz",
        "/usr/lib/modules/6.1/modules.dep",
        "/opt/e.ko",
    )
    assert compare.modules_of({"path": path} for path in paths) == {"a_b", "c", "d"}
