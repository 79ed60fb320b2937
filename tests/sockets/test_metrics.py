"""Every metric that the service exposes, held against Prometheus' conventions and against docs/metrics.md."""

import re
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from netboot.boot.metrics import Counters
from netboot.lifecycle.history import Found
from netboot.lifecycle.objective import Measured
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.remedies import RemediesStatus
from netboot.lifecycle.state import Batch
from netboot.status.approver import ApproverStatus
from netboot.status.fetcher import FetcherStatus
from netboot.status.join import JoinStatus
from netboot.status.keys import KeysStatus
from netboot.status.leading import LeaderStatus
from netboot.status.nodes import NodesStatus
from netboot.status.pause import PauseStatus
from netboot.status.resources import ResourcesStatus, ShipperStatus
from netboot.status.traces import TracesStatus
from tests.records import event, script
from tests.sockets.api import NOW, SUPERVISOR, UP, Api

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
NOT_BASE = re.compile(
    r"_(ms|milliseconds?|us|microseconds|ns|minutes|hours|days|kb|mb|gb|kib|mib|gib|kilobytes|megabytes|percent)(_|$)"
)
_ROW = re.compile(r"\| `(netboot_\w+)` \| (\w+) \|([^|]*)\| ([^|]+) \|([^|]*)\|")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> list[Metric]:
    """All that there is where everything is configured: boot servers, clusters, an upstream, a signal from outside."""
    api = Api(tmp_path_factory.mktemp("metrics"))
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED)]))
    api.history.count(Found([Measured(what, "hgx", "a" * 12, 16_000, 1_000) for what in ("Ready", "phase Switched")]))
    common = {"at_ms": NOW, "ok": True, "message": "in order"}
    api.enrolments.alert("gpu-001", "other-key", "another key in the same boot", NOW)
    processes = dict.fromkeys(("boot-0", "join-0", "approver-default", "nodes-default", "fetcher"), UP)
    api.say(
        boot_0=Counters(bytes_sent=1).status(NOW, open_connections=1, journal_lag=1),
        supervisor=SUPERVISOR.model_copy(update={"processes": processes}),
        fetcher=FetcherStatus(**common, images={}, transfer=None, fetched=1, bytes=1, failed=1),
        pause=PauseStatus(**common, may=True, reason="go", age_seconds=1.0, asked=1, failed=0),
        resources=ResourcesStatus(**common, objects={"machine": 1}, age_seconds=1.0, unavailable=1),
        keys=KeysStatus(**common, age_seconds=1.0, unavailable=1),
        shipper=ShipperStatus(
            **common,
            objects=1,
            behind=1,
            lag_seconds=1.0,
            a_second=1.0,
            written=1,
            events_waiting=1,
            events_dropped=1,
            failed=1,
            refused=1,
            overwritten=1,
        ),
        traces=TracesStatus(**common, waiting=1, open=1, exported=1, dropped=1, failed=1),
        approver_default=ApproverStatus(
            **common,
            decided=(("approved", "client", 1),),
            unavailable=1,
            waiting=0,
            oldest_seconds=0.0,
            leader=LeaderStatus(replica="a", leads=True, leader="a", epoch=1, since_ms=NOW, vacant_seconds=0.0),
        ),
        join_0=JoinStatus(**common, clusters={}, certificate_expires_ms=NOW + 1, refused={"403": 1}),
        nodes_default=NodesStatus(
            **common, unavailable=0, registered=1, ready=1, gates={"open": 1}, gates_moved={"opened": 1}
        ),
        remedies=RemediesStatus(at_ms=NOW, taken={"reboot": 1}),
    )
    assert api.get("/v1/whoami", None).status_code == 401
    return list(text_string_to_metric_families(api.get("/metrics", None).text))


def documented() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name → type and labels, by the page; each once, each with a meaning."""
    rows = _ROW.findall(PAGE.read_text())
    assert len({name for name, *_ in rows}) == len(rows)
    return {name: (kind, tuple(sorted(re.findall(r"`(\w+)`", labels)))) for name, kind, labels, *_ in rows}


def test_the_page_lists_what_is_exposed_and_nothing_else(exposed: list[Metric]) -> None:
    found = {}
    for metric in exposed:
        for sample in metric.samples:
            histogram = metric.type == "histogram"  # one row of the page, for `_bucket`, `_count` and `_sum` of it
            name = metric.name if histogram else sample.name
            found[name] = (
                metric.type,
                tuple(sorted(label for label in sample.labels if label != "le" or not histogram)),
            )
    assert found == documented()


def test_boot_servers_are_added_up_and_gauges_of_those_that_are_not_there_left_out(tmp_path: Path) -> None:
    api = Api(tmp_path)
    one, other = Counters(bytes_sent=3, refused=1), Counters(bytes_sent=4)
    one.scripts["boot"], other.scripts["boot"] = 5, 6
    api.say(
        supervisor=SUPERVISOR.model_copy(
            update={"processes": {"boot-0": UP, "boot-1": UP.model_copy(update={"ready": False})}}
        ),
        boot_0=one.status(NOW, open_connections=10, journal_lag=20),
        boot_1=other.status(NOW, open_connections=100, journal_lag=200),
    )
    lines = api.get("/metrics", None).text.splitlines()
    assert {
        'netboot_scripts_total{outcome="boot"} 11.0',
        'netboot_scripts_total{outcome="refused"} 0.0',
        "netboot_sent_bytes_total 7.0",
        "netboot_connections_refused_total 1.0",
        "netboot_open_connections 10.0",
        "netboot_journal_lag_records 20.0",
    } <= set(lines)


def test_names_follow_the_conventions(exposed: list[Metric]) -> None:
    assert [fault for metric in exposed for fault in faults(metric)] == []


def faults(metric: Metric) -> list[str]:
    """What Prometheus' conventions have against a metric (prometheus.io/docs/practices/naming)."""
    found = []
    histogram = metric.type == "histogram"
    reserved = ("quantile", "job", "instance") if histogram else ("le", "quantile", "job", "instance")
    for name in {metric.name} if histogram else {sample.name for sample in metric.samples}:
        base = name.removesuffix("_total")
        rules = {
            "is not of our names": re.fullmatch(r"netboot(_[a-z][a-z0-9]*)+", name) is None,
            "is of no type that we know": metric.type not in ("counter", "gauge", "histogram"),
            "is a counter without _total, or _total without a counter": (metric.type == "counter") != (name != base),
            "counts since something, and is no counter": metric.type == "gauge" and "since the" in metric.documentation,
            "ends like a part of a histogram": base.endswith(("_count", "_sum", "_bucket")),
            "is not in a base unit": NOT_BASE.search(name) is not None,
            "does not end in its unit": re.search(r"_(seconds|bytes)_", base) is not None,
            "is a moment that is not a _timestamp_seconds": any(sample.value > 1e9 for sample in metric.samples)
            and not name.endswith("_timestamp_seconds"),
            "is a timestamp in another unit": "timestamp" in name and not name.endswith("_timestamp_seconds"),
            "says nothing of itself": not metric.documentation.endswith("."),
            "has a label that it should not have": any(
                re.fullmatch(r"[a-z][a-z_]*", label) is None or label in reserved
                for sample in metric.samples
                for label in sample.labels
            ),
        }
        found += [f"{name} {words}" for words, broken in rules.items() if broken]
    return found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# HELP netboot_lag_ms Lag.\n# TYPE netboot_lag_ms gauge\nnetboot_lag_ms 1\n", "is not in a base unit"),
        (
            "# HELP netboot_seen_seconds Seen.\n# TYPE netboot_seen_seconds gauge\nnetboot_seen_seconds 1.7e9\n",
            "is a moment that is not a _timestamp_seconds",
        ),
        (
            "# HELP netboot_restarts Since the start.\n# TYPE netboot_restarts gauge\nnetboot_restarts 1\n",
            None,
        ),
        (
            "# HELP netboot_restarts Times, since the start.\n# TYPE netboot_restarts gauge\nnetboot_restarts 1\n",
            "counts since something, and is no counter",
        ),
        (
            "# HELP netboot_bytes_sent Bytes.\n# TYPE netboot_bytes_sent gauge\nnetboot_bytes_sent 1\n",
            "does not end in its unit",
        ),
        ("netboot_things 1\n", "is of no type that we know"),
    ],
)
def test_the_rules_find_what_breaks_them(text: str, fault: str | None) -> None:
    (metric,) = text_string_to_metric_families(text)
    if fault is None:
        assert faults(metric) == []
    else:
        assert fault in " ".join(faults(metric))


def test_machines_are_told_one_by_one_also_those_that_never_booted_and_none_that_is_gone(tmp_path: Path) -> None:
    api = Api(tmp_path)
    api.states.take(Batch("boot-0.db", 1, 3, [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED)]))
    api.states.take(Batch("boot-0.db", 1, 5, [script("gone-1", 1), event("gone-1", 1, Phase.BOOTED)]))
    api.states.declare({"gpu-001", "gpu-002", "off-001"}, 1)
    lines = api.get("/metrics", None).text.splitlines()
    machines = [line for line in lines if line.startswith("netboot_machine_info{")]
    known = {re.findall(r'machine="([^"]*)"', line)[0]: re.findall(r'image="([^"]*)"', line)[0] for line in machines}
    assert known.keys() == {"gpu-001", "gpu-002", "off-001"}
    assert (len(known["gpu-001"]), known["gpu-002"]) == (12, "")
    by_image = [line for line in lines if line.startswith("netboot_machines_by_image{")]
    assert by_image == [
        'netboot_machines_by_image{image=""} 2.0',
        f'netboot_machines_by_image{{image="{known["gpu-001"]}"}} 1.0',
    ]
    assert {
        "netboot_machine_info_listed 1.0",
        'netboot_machines_by_state{state="Booted"} 1.0',
        'netboot_machines_by_state{state="none"} 2.0',
        'netboot_machines_by_health{status="none"} 3.0',
    } <= set(lines)


def test_of_a_fleet_that_is_too_large_machines_are_counted_and_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netboot.web.metrics_info.MOST_MACHINES", 1)
    text = Api(tmp_path).get("/metrics", None).text
    assert "netboot_machine_info{" not in text
    assert "netboot_machine_info_listed 0.0" in text
    assert 'netboot_machines_by_image{image=""} 3.0' in text
    assert "netboot_machines 3.0" in text


def test_of_many_images_the_most_served_are_named_and_the_rest_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netboot.web.metrics_info.MOST_IMAGES", 1)
    api = Api(tmp_path)
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED)]))
    lines = [line for line in api.get("/metrics", None).text.splitlines() if line.startswith("netboot_machines_by_im")]
    assert lines == ['netboot_machines_by_image{image=""} 2.0', 'netboot_machines_by_image{image="other"} 1.0']
