"""Metrics of what wants an operator: `/readyz`, detail by detail; alerts about machines' identity; certificates."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from netboot.lifecycle.errors import CannotTellError
from netboot.status.join import JoinStatus
from netboot.status.supervisor import SupervisorStatus
from netboot.web.dependencies import Dependencies
from netboot.web.readiness import assess


class Attention(Collector):
    """As `/readyz` says it now, and beside it what has a moment. What cannot be told is left out."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of time: what there is to tell depends on the moment."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric that can be told now; called by the registry for each scrape."""
        readiness = assess(self._deps)
        text = "1: machines can boot now, as `/readyz` says."
        yield GaugeMetricFamily("netboot_ready", text, value=int(readiness.ready))
        text = "1: this detail of `/readyz` is in order."
        details = GaugeMetricFamily("netboot_detail_ok", text, labels=["detail"])
        for name, detail in sorted(readiness.details.items()):
            details.add_metric([name], int(detail.ok))
        yield details
        yield from self._alerts()
        if (ends_ms := self._deps.certificate_expires_ms()) is not None:
            text = "When the certificate of the operators' listener expires, seconds since 1970."
            name = "netboot_management_certificate_expiry_timestamp_seconds"
            yield GaugeMetricFamily(name, text, value=ends_ms / 1000)
        yield from _joining(self._join_servers())

    def _alerts(self) -> Iterator[Metric]:
        text = "When something last happened that may be an attack on a machine's identity, seconds since 1970."
        alerts = GaugeMetricFamily("netboot_enrolment_alert_timestamp_seconds", text, labels=["kind"])
        try:
            for kind, last_ms in sorted(self._deps.register.store.latest_alerts().items()):
                alerts.add_metric([kind], last_ms / 1000)
        except CannotTellError:
            return
        yield alerts

    def _join_servers(self) -> list[JoinStatus]:
        try:
            supervisor = self._deps.status.read("supervisor", SupervisorStatus)
            names = [name for name in supervisor.processes if name.startswith("join-")] if supervisor else []
            said = [self._deps.status.read(name, JoinStatus) for name in names]
        except CannotTellError:
            return []
        return [each for each in said if each is not None]


def _joining(said: Sequence[JoinStatus]) -> Iterator[Metric]:
    """What the join servers say, where there are any."""
    ends = [each.certificate_expires_ms for each in said if each.certificate_expires_ms is not None]
    if ends:
        text = "When the certificate of join's listener expires, seconds since 1970."
        yield GaugeMetricFamily("netboot_join_certificate_expiry_timestamp_seconds", text, value=min(ends) / 1000)
    if said:
        total = Counter[str]()
        for each in said:
            total.update(each.refused)
        text = "Requests that join refused, since its processes were started."
        family = CounterMetricFamily("netboot_join_refused", text, labels=["code"])
        for code, count in sorted(total.items()):
            family.add_metric([code], count)
        yield family
