"""Each metric of the alert rules and of the dashboard, names and labels, held against a running service of all kinds of
processes, one of whose machines is in service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from images.store.store import Store
from netboot.config import load_config
from netboot.join.enrolment import Act, Import
from netboot.lifecycle.known import Node
from netboot.stores.enrolment import SqliteEnrolments
from tests.processes import wait_for
from tests.sites import JOINING, add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.proven import MAC, joined, node, reported
from tests.sockets.service import serving

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> list[Metric]:
    folder, [nobody, upstream] = tmp_path_factory.mktemp("monitored"), free_ports(2)
    more = f"upstream: {{place: 'http://127.0.0.1:{upstream}/v1'}}\n"
    file = make_whole_site(folder / "site", nobody, inventory=JOINING, workers=1, more=more)
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as service:
        store = SqliteEnrolments(config.data / "enrolment.db")
        store.apply([("gpu-002", Import("b2" * 32))], Act("alice"), 1)
        store.alert("gpu-002", "other-key", "another key in the same boot", 1_700_000_000_000)
        boot = service.boot(MAC)
        reported(service, boot)
        joined(service, boot, folder)
        node(service, Node.IN_SERVICE)
        wait_for(lambda: 'target="InService"' in service.text("/metrics"), 60)
        wait_for(lambda: "netboot_join_certificate_expiry_timestamp_seconds" in service.text("/metrics"), 60)
        return list(text_string_to_metric_families(service.text("/metrics")))


def expressions() -> Iterator[str]:
    """Of every rule and of every panel."""
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def selectors(expression: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Name of each metric, with what it asks of labels: label → value, or "" where it is not for one value."""
    for name, matchers in re.findall(r"(netboot_\w+)(?:\{([^}]*)\})?", expression):
        found = re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', matchers)
        yield name, {label: value if how == "=" else "" for label, how, value in found}


def grouped(expression: str) -> set[str]:
    """Labels by which it groups."""
    return {label for labels in re.findall(r"by \(([^)]*)\)", expression) for label in re.split(r",\s*", labels)}


def test_there_is_each_metric_that_is_asked_for_with_its_labels_and_their_values(exposed: list[Metric]) -> None:
    samples: dict[str, list[dict[str, str]]] = {}
    for metric in exposed:
        for sample in metric.samples:
            samples.setdefault(sample.name, []).append(sample.labels)
    asked = 0
    for expression in expressions():
        labels = set[str]()
        for name, matchers in selectors(expression):
            asked += 1
            assert name in samples, expression
            have = [set(each) for each in samples[name]]
            assert all(set(matchers) <= each for each in have), expression
            labels |= have[0]
            wanted = {label: value for label, value in matchers.items() if value and label not in ("target", "le")}
            assert any(wanted.items() <= each.items() for each in samples[name]), expression
        assert grouped(expression) <= labels, expression
    assert asked > 50


def test_the_dashboard_is_one_that_a_person_can_read_and_change() -> None:
    document = json.loads((MONITORING / "dashboard.json").read_text())
    places = [panel["gridPos"] for panel in document["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(cells) == len(set(cells)), "panels lie on each other"
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
    legends = [(t["expr"], t.get("legendFormat", "")) for panel in document["panels"] for t in panel["targets"]]
    for expression, legend in legends:
        shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
        assert shown <= grouped(expression) or expression == "netboot_detail_ok == 0", expression
