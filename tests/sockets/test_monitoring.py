"""Each metric of the alert rules and of the dashboard, names and labels, held against a running service of all kinds of
processes, one of whose machines is in service; and asked for by a real Prometheus that scrapes it."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import yaml
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from images.store.store import Store
from lab.errors import DeadlineError
from netboot.config import load_config
from netboot.join.enrolment import Act, Import
from netboot.lifecycle.known import Node
from netboot.stores.enrolment import SqliteEnrolments
from tests.processes import wait_for
from tests.sites import JOINING, add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.proven import MAC, joined, node, reported
from tests.sockets.service import serving

ELSEWHERE = {
    "netboot_management_certificate_expiry_timestamp_seconds",
    "netboot_resources_age_seconds",
    "netboot_keys_age_seconds",
    "netboot_keys_followed",
    "netboot_leader",
    "netboot_leader_vacant_seconds",
}
"""Where the operators' listener has a certificate, which this one has not: `test_management_tls.py` has one; where the
inventory is custom resources: `tests/cluster/test_resources.py`; where there are replicas: `test_replicas.py`; where
they share keys: `test_metrics.py`."""
MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


class Watched(NamedTuple):
    """What the service exposed and logged, and where Prometheus answers that scrapes it, while it runs."""

    text: str
    log: str
    prometheus: str

    def ask(self, path: str, **params: str) -> Any:
        """The data of an answer of Prometheus' API."""
        answer = requests.get(f"{self.prometheus}/api/v1/{path}", params=params, timeout=60).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def scraping(folder: Path, target: str) -> Iterator[str]:
    """Prometheus, with our rules, on loopback; its data in `folder`."""
    [port] = free_ports(1)
    scrape = {"job_name": "netboot", "static_configs": [{"targets": [target]}]}
    # a scrape that takes longer than its interval is given up, and its panels are empty
    often = {"scrape_interval": "4s", "scrape_timeout": "4s", "evaluation_interval": "1s"}
    rules = [str(MONITORING / "alerts.yaml")]
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"global": often, "rule_files": rules, "scrape_configs": [scrape]}))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(60)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder, [nobody, upstream] = tmp_path_factory.mktemp("monitored"), free_ports(2)
    more = f"upstream: {{place: 'http://127.0.0.1:{upstream}/v1'}}\nlog: {{format: json, levels: {{join: debug}}}}\n"
    file = make_whole_site(folder / "site", nobody, inventory=JOINING, workers=1, more=more)
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as service, scraping(folder, str(config.management.listen)) as prometheus:
        store = SqliteEnrolments(config.data / "enrolment.db")
        store.apply([("gpu-002", Import("b2" * 32))], Act("alice"), 1)
        store.alert("gpu-002", "other-key", "another key in the same boot", 1_700_000_000_000)
        boot = service.boot(MAC)
        reported(service, boot)
        joined(service, boot, folder)
        node(service, Node.IN_SERVICE)
        wait_for(lambda: 'target="InService"' in service.text("/metrics"))
        # each process says what it has to tell when it comes to it; what is never told a test names
        asked = {name for each in expressions() for name, _ in selectors(each)} - ELSEWHERE
        texts = [""]

        def told() -> bool:
            texts.append(service.text("/metrics"))
            return asked <= {sample(line) for line in texts[-1].splitlines()}

        with suppress(DeadlineError):
            wait_for(told)
        yield Watched(texts[-1], service.log[: service.log.rindex("\n") + 1], prometheus)


@pytest.fixture(scope="module")
def exposed(watched: Watched) -> list[Metric]:
    return list(text_string_to_metric_families(watched.text))


def sample(line: str) -> str:
    """The name of a line's metric."""
    return re.split("[ {]", line)[0]


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
            if name in ELSEWHERE:
                labels |= grouped(expression)
                continue
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


def test_prometheus_own_tool_has_nothing_against_the_metrics(watched: Watched) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=watched.text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


SPOILT = "# HELP netboot_scripts Scripts.\n# TYPE netboot_scripts counter\nnetboot_scripts 1\n"


def test_a_name_that_breaks_the_conventions_is_found() -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=SPOILT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert 'counter metrics should have "_total" suffix' in done.stdout + done.stderr


def test_prometheus_scrapes_the_service_and_answers_every_query_of_rules_and_dashboard(watched: Watched) -> None:
    def scraped_twice() -> bool:
        found = watched.ask(
            "query", query='count_over_time(netboot_boot_duration_seconds_count{target="InService"}[1h])'
        )
        return any(float(each["value"][1]) >= 2 for each in found["result"])

    def reached() -> bool:
        try:
            return requests.get(f"{watched.prometheus}/-/ready", timeout=60).ok
        except requests.ConnectionError:
            return False

    wait_for(reached)
    wait_for(scraped_twice)
    # a scrape that comes too late is given up, and until the next one nothing is there
    wait_for(lambda: health(watched) == [("up", "")])
    for expression in expressions():
        watched.ask("query", query=expression)
    wait_for(lambda: silent(watched) <= {"Not in order"})  # each panel shows something; that one what is wrong
    rules = [rule for group in watched.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule.get("lastError", "") for rule in rules} == {""}
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}, "unknown: not evaluated yet"


def health(watched: Watched) -> list[tuple[str, str]]:
    """Of each target, with what failed last."""
    return [(each["health"], each["lastError"]) for each in watched.ask("targets")["activeTargets"]]


def silent(watched: Watched) -> set[str]:
    """The panels of which a query finds nothing."""
    return {panel for panel, expression in panels() if not watched.ask("query", query=expression)["result"]}


def panels() -> Iterator[tuple[str, str]]:
    """Title of a panel, and each of its queries."""
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])


def test_each_line_of_the_log_is_json_where_that_is_wanted(watched: Watched) -> None:
    lines = [json.loads(line) for line in watched.log.splitlines() if line.startswith("{")]
    others = [line for line in watched.log.splitlines() if not line.startswith("{")]
    assert all(re.match(r"WARNING: running as root|  +\(?", line) for line in others), others
    assert {"time", "level", "process", "msg"} <= set.intersection(*(set(line) for line in lines))
    assert {"supervisor", "boot-0", "controllers"} <= {line["process"] for line in lines}
