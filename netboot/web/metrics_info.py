"""Metrics that say what there is: which netboot runs, and which machines (`…_info` is 1, its labels tell)."""

import json
import platform
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from netboot.lifecycle.ports import States
from netboot.lifecycle.snapshot import Snapshot

MOST_MACHINES = 5_000
"""Of larger inventories machines are not listed: some 0.2 MB of each scrape for each thousand, which others join with
what they have of them. `netboot_machine_info_listed` says so."""

MOST_IMAGES, OTHER = 64, "other"
"""Of what more images are served, machines are counted together."""


@cache
def build() -> tuple[str, str, str]:
    """Version, revision (the commit, where it was installed from git; PEP 610) and Python's version. Empty where it
    cannot be told: of files that were copied, not installed, nothing is known."""
    try:
        installed = distribution("netboot")
    except PackageNotFoundError:
        return "", "", platform.python_version()
    try:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        revision = str(origin.get("vcs_info", {}).get("commit_id", ""))
    except (ValueError, AttributeError):
        revision = ""
    return installed.version, revision, platform.python_version()


def build_info() -> Iterator[Metric]:
    """Always 1."""
    text = "1: which netboot this is."
    info = GaugeMetricFamily("netboot_build_info", text, labels=["version", "revision", "python"])
    info.add_metric(list(build()), 1)
    yield info


def machine_info(snapshot: Snapshot, states: States) -> Iterator[Metric]:
    """Machines of the inventory in force, also such as never booted: by image, and each. Raises
    StateUnavailableError."""
    machines, running = snapshot.inventory.machines, states.running()
    images = Counter(running.get(each.name, "")[:12] for each in machines)
    text = "Machines of the inventory in force by what their current boot was served; empty: none is known."
    by_image = GaugeMetricFamily("netboot_machines_by_image", text, labels=["image"])
    told = dict(images.most_common(MOST_IMAGES))
    for image, count in sorted(told.items()):
        by_image.add_metric([image], count)
    if left := len(machines) - sum(told.values()):
        by_image.add_metric([OTHER], left)
    yield by_image
    listed = len(machines) <= MOST_MACHINES
    text = f"1: machines are listed by netboot_machine_info; 0: there are more than {MOST_MACHINES}."
    yield GaugeMetricFamily("netboot_machine_info_listed", text, value=int(listed))
    if not listed:
        return
    text = "1: a machine of the inventory in force; image: what its current boot was served, empty where none is known."
    labels = ["machine", "class", "rack", "cluster", "profile", "image"]
    info = GaugeMetricFamily("netboot_machine_info", text, labels=labels)
    for each in machines:
        image = running.get(each.name, "")[:12]
        info.add_metric([each.name, each.class_name or "", each.rack or "", each.cluster, each.profile, image], 1)
    yield info
