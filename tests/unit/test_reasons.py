"""The table of conditions and reasons: docs/conditions.md has the same."""

import re
from pathlib import Path

from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from netboot.lifecycle.transitions import Mark

PAGE = Path(__file__).parents[2] / "docs" / "conditions.md"
_ROW = re.compile(r"^\| `(\w+)` \| `(True|False|Unknown)` \| `(\w+)` \| \S", re.MULTILINE)


def test_the_page_has_the_table_of_the_code_row_by_row() -> None:
    table = [(kind, status, reason) for kind, reasons in STATUSES.items() for reason, status in reasons.items()]
    assert _ROW.findall(PAGE.read_text(encoding="utf-8")) == table


def test_every_condition_can_be_true_and_false_and_every_reason_is_used() -> None:
    assert list(STATUSES) == list(ConditionType)
    assert all({"True", "False"} <= set(reasons.values()) or kind == "Healthy" for kind, reasons in STATUSES.items())
    assert {reason for reasons in STATUSES.values() for reason in reasons} == set(Reason)
    assert {Reason(mark.value) for mark in Mark} <= STATUSES[ConditionType.IN_SERVICE].keys()


def test_reasons_are_camel_case_as_kubernetes_has_them() -> None:
    assert [reason for reason in Reason if re.fullmatch(r"([A-Z][a-z]+)+", reason) is None] == []
