"""Deadlines of phases: defaults, and what classes and profiles say over them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.values.durations import duration, in_words
from images.values.strict import FaultsError
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.transitions import Gate
from netboot.machines.boot_limit import BootLimit
from netboot.machines.deadlines import DEFAULTS, LONGEST, Deadline, in_force
from netboot.machines.inventory import load_inventory
from netboot.machines.values import Inventory, boot_limit_of, deadlines_of

FILE = """
channels: [{name: stable}]
profiles: [{name: default, channel: stable, deadlines: {Switched: 45m}}]
classes: [{name: hgx, deadlines: {InitrdFetched: 20m, Switched: 30m, Joining: none, Lost: 90s}}]
machines:
- {name: gpu-001, match: {serial: S1}, profile: default, class: hgx}
- {name: cpu-001, match: {serial: S2}, profile: default}
"""


def loaded(folder: Path, text: str = FILE) -> Inventory:
    (folder / "site.yaml").write_text(text)
    return load_inventory(folder)


def test_there_is_a_default_for_every_phase_that_another_follows_and_for_a_node_that_is_lost() -> None:
    assert list(DEFAULTS) == [*ORDER[:-1], Gate.HEALTH_GATED, "Lost", "ReportStale"]


def test_the_profile_s_word_is_over_the_class_s_and_that_over_the_default(tmp_path: Path) -> None:
    inventory = loaded(tmp_path)
    both = deadlines_of(inventory.profiles[0], inventory.classes[0])
    assert {name: both[name] for name in ("ScriptServed", "InitrdFetched", "Switched", "Joining", "Lost")} == {
        "ScriptServed": Deadline(300, ""),
        "InitrdFetched": Deadline(1200, "class hgx"),
        "Switched": Deadline(2700, "profile default"),
        "Joining": Deadline(0, "class hgx"),
        "Lost": Deadline(90, "class hgx"),
    }
    assert deadlines_of(inventory.profiles[0], None)["InitrdFetched"] == Deadline(600, "")
    assert both.keys() == DEFAULTS.keys()


def test_an_inventory_keeps_them_and_one_without_any_is_written_as_before(tmp_path: Path) -> None:
    inventory = loaded(tmp_path)
    assert Inventory.model_validate_json(inventory.model_dump_json(by_alias=True)) == inventory
    without = FILE.replace(", deadlines: {Switched: 45m}", "").replace(
        ", deadlines: {InitrdFetched: 20m, Switched: 30m, Joining: none, Lost: 90s}", ""
    )
    assert "deadlines" not in loaded(tmp_path, without).model_dump_json()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("{Switched: 45}", None),
        ("{Switched: soon}", "profiles[0].deadlines.Switched: must be a duration like 90s, 15m or 2h, or none"),
        ("{Switched: true}", "profiles[0].deadlines.Switched: must be a duration like 90s, 15m or 2h, or none"),
        ("{Switched: -1}", "profiles[0].deadlines.Switched: must be 0 at least"),
        ("{Switched: 200h}", f"profiles[0].deadlines.Switched: must be {LONGEST} at most"),
        (
            "{Xyz: 45m}",
            f"profiles[0].deadlines.Xyz: no deadline is named 'Xyz'; there are {', '.join(DEFAULTS)}",
        ),
        ("{Posted: 45m}", "profiles[0].deadlines.Posted: no deadline is named 'Posted'; did you mean 'Booted'?"),
        (
            "{initrdfetch: 45m}",
            "profiles[0].deadlines.initrdfetch: no deadline is named 'initrdfetch'; did you mean 'InitrdFetched'?",
        ),
        (
            "{CsrApproved: 45m}",
            "profiles[0].deadlines.CsrApproved: no deadline is named 'CsrApproved'; did you mean 'CSRApproved'?",
        ),
        ("{7: 45m}", "profiles[0].deadlines[7]: must be text: put a number, true, false or a date into quotes"),
    ],
)
def test_what_is_no_deadline_is_a_fault_with_its_place(tmp_path: Path, said: str, fault: str | None) -> None:
    text = FILE.replace("{Switched: 45m}", said)
    if fault is None:
        assert loaded(tmp_path, text).profiles[0].deadlines == {"Switched": 45}
        return
    with pytest.raises(FaultsError) as caught:
        loaded(tmp_path, text)
    assert [str(each).replace(f"{tmp_path}/", "") for each in caught.value.faults] == [f"site.yaml:3: {fault}"]


def test_the_last_that_is_said_counts() -> None:
    assert in_force(("a", {"Lost": 1}), ("b", {"Lost": 2}))["Lost"] == Deadline(2, "b")


@given(st.integers(1, 9_999_999))
def test_durations_are_read_as_they_are_written(seconds: int) -> None:
    written = in_words(seconds)
    if len(written) <= 7:
        assert duration(written) == seconds


def test_a_limit_of_boots_is_by_default_by_class_and_by_profile(tmp_path: Path) -> None:
    limited = FILE.replace("{name: hgx,", "{name: hgx, boot_limit: 3,")
    inventory = loaded(tmp_path, limited)
    assert boot_limit_of(inventory.profiles[0], None) == BootLimit(5, "")
    assert boot_limit_of(inventory.profiles[0], inventory.classes[0]) == BootLimit(3, "class hgx")
    both = loaded(tmp_path, limited.replace("channel: stable,", "channel: stable, boot_limit: none,"))
    assert boot_limit_of(both.profiles[0], both.classes[0]) == BootLimit(0, "profile default")
    assert Inventory.model_validate_json(both.model_dump_json(by_alias=True)) == both
    assert "boot_limit" not in loaded(tmp_path).model_dump_json()


@pytest.mark.parametrize("said", ["-1", "0", "16", "many", "1.5", "true"])
def test_what_is_no_limit_of_boots_is_a_fault_with_its_place(tmp_path: Path, said: str) -> None:
    with pytest.raises(FaultsError) as caught:
        loaded(tmp_path, FILE.replace("{name: hgx,", f"{{name: hgx, boot_limit: {said},"))
    assert [f"{each}".partition(": classes[0].boot_limit: ")[1] != "" for each in caught.value.faults] == [True]
