"""The alert rules that are shipped, as Prometheus' own tool reads them, and a page that says of each what to do."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from netboot.stores.journal import MOST_ROWS

ROOT = Path(__file__).parents[3]
RULES, CASES = ROOT / "deploy/monitoring/alerts.yaml", ROOT / "deploy/monitoring/alerts_test.yaml"
PAGE = ROOT / "docs/alerts.md"


def promtool(*arguments: str | Path) -> str:
    """What it says; it has to be content."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_prometheus_takes_the_rules_and_they_fire_when_they_should() -> None:
    assert f"SUCCESS: {len(rules())} rules found" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", CASES)


def test_a_rule_that_is_spoilt_is_found(tmp_path: Path) -> None:
    for file in (RULES, CASES):
        spoilt = file.read_text().replace("netboot_images_usable == 0", "netboot_images_usable == 1")
        (tmp_path / file.name).write_text(spoilt)
    done = subprocess.run(["promtool", "test", "rules", tmp_path / CASES.name], capture_output=True, check=False)
    assert done.returncode != 0


def test_each_alert_has_a_case_in_which_it_fires_and_a_section_that_says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert sorted(set(names)) == sorted(names)
    assert set(re.findall(r'alertname="(\w+)"', CASES.read_text())) == set(names)
    assert re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE) == names
    for rule in rules():
        assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
        assert rule["annotations"]["summary"]
        assert rule["labels"] in ({"severity": "page"}, {"severity": "ticket"})


def test_the_bound_of_a_journal_is_the_journal_s_own() -> None:
    [rule] = [rule for rule in rules() if rule["alert"] == "NetbootJournalNearItsBound"]
    assert rule["expr"].rpartition(" > ")[2] == str(MOST_ROWS // 2)
