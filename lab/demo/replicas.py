"""The part of the demo with `--state kubernetes`: three replicas of the service, whose state is objects of the API
server of the cluster that the machine joins. One is killed while the machine works, and the others go on."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.markup import escape

from lab.demo.joining import KINDS, Joining
from lab.demo.progress import Demo
from lab.kube.kubectl import Kubectl
from lab.registry import Registry, registry
from lab.service import Service, service
from lab.site import Site, another_site

NAMES = ("alpha", "beta", "gamma")
LEADERS = ("approver", "nodes", "rollouts", "shipper")
"""The names of their Leases."""
LEAD_SECONDS = 180.0
"""Against hanging alone: two durations of a Lease are half a minute."""
_STATE = """
state: {kubernetes: {}}
"""
_MANIFESTS = ("--inventory", "--enrolments", "--keys")


@dataclass(slots=True)
class Replicas:
    """Their sites, in the order of `NAMES`, and the services that were started of them. `images`: where they get images
    from."""

    demo: Demo
    join: Joining
    sites: Sequence[Site]
    images: Registry
    running: list[Service] = field(default_factory=list)

    def publish(self, image: dict[str, Any], source: Site) -> None:
        """An image of one replica's store gets into the stores of all that run."""
        name = image["manifest"]["name"]
        where = f"{self.images.address}/netboot/images:{name}"
        with self.demo.doing(f"the operator runs: netboot image push {name} {where}, and each replica pulls it"):
            source.netboot("image", "push", image["image"], where)
            for site in self._alive():
                if site is not source:
                    site.netboot("image", "pull", where)

    def start(self, stack: ExitStack) -> None:
        """Start all three; returns when they answer, and of each kind one leads."""
        with self.demo.doing(f"starting three replicas, {', '.join(NAMES)}: netboot serve"):
            logs = self.demo.folder / "logs"
            for name, site in zip(NAMES, self.sites, strict=True):
                self.running.append(stack.enter_context(service(site, logs / name, begin=False)))
                self.running[-1].spawn()
            for each in self.running:
                each.wait()
            self._who_leads(NAMES)

    def lose_first(self, redirect: Callable[[str], None]) -> Service:
        """The first is killed, and machines are sent to the second by `redirect`, which takes the URL of its script;
        the second."""
        first, second, *_ = self.running
        with self.demo.doing(f"{NAMES[0]} is killed (kill -9), and DHCP names {NAMES[1]} in its place"):
            first.kill()
            redirect(f"{second.site.url}/boot.ipxe")
            self._who_leads(NAMES[1:])
        return second

    def show(self) -> None:
        """What kubectl shows of all this."""
        argv = ("get", KINDS, "-n", "netboot")
        with self.demo.doing(f"the operator runs: kubectl {' '.join(argv)}"):
            for line in self.join.kubectl(*argv).splitlines():
                self.demo.say(f"    {escape(line)}" if line else "")

    def facts(self) -> list[tuple[str, str]]:
        """Label and text of rows of the last page."""
        first, *others = NAMES
        words = f"objects of that API server, for three replicas; {first} was killed, {' and '.join(others)} went on"
        return [("state", words), ("images", f"pulled by each replica from the registry at {self.images.address}")]

    def _alive(self) -> list[Site]:
        """Before any was started, all."""
        return [each.site for each in self.running if each.running is not None] or list(self.sites)

    def _who_leads(self, names: Sequence[str]) -> None:
        """Tell who leads what, once it is one of these each."""
        leads: dict[str, str] = {}

        def elected() -> bool:
            for each in self.join.kubectl.get("leases", "-n", "netboot-leaders")["items"]:
                holder = each["spec"].get("holderIdentity") or ""
                leads[each["metadata"]["name"]] = holder.rpartition("_")[0]
            return all(leads.get(kind) in names for kind in LEADERS)

        self.running[-1].wait_until(f"one of {', '.join(names)} leads of each kind", elected, LEAD_SECONDS)
        for kind in LEADERS:
            self.demo.say(f"    {leads[kind]} leads {kind}")


def replicas(demo: Demo, stack: ExitStack, site: Site, join: Joining) -> Replicas:
    """What an operator does once, as docs/ha.md has it, with a site whose inventory is declared: its state becomes
    objects, and two more replicas are made of it. None runs yet."""
    admin = ("--admin-kubeconfig", str(join.cluster.admin))
    with demo.doing("the operator runs: netboot cluster crds | kubectl apply, and netboot migrate --to kubernetes"):
        _apply(join.kubectl, demo.folder, "crds", site.netboot("cluster", "crds"))
        join.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        counts = site.netboot("migrate", "--to", "kubernetes", *admin, "--output", "name").split()
        demo.say(f"    {', '.join(counts)} are objects now")
    with demo.doing("accounts and keys of the replicas, and netboot.yaml: `state: {kubernetes: {}}`"):
        with site.config.open("a") as config:
            config.write(f"{_STATE}replicas: {{name: {NAMES[0]}}}\n")
        for option in _MANIFESTS:
            _apply(join.kubectl, demo.folder, option.strip("-"), site.netboot("cluster", "manifests", option))
            site.netboot("cluster", "kubeconfigs", option, *admin)
        demo.say(f"    netboot cluster keys push: {site.netboot('cluster', 'keys', 'push', *admin).strip()}")
        sites = [site, *(_copy(site, name) for name in NAMES[1:])]
    join.enrolments_are_objects = True
    return Replicas(demo, join, sites, stack.enter_context(registry(demo.folder / "registry")))


def _copy(first: Site, name: str) -> Site:
    site = another_site(first, first.folder.with_name(f"site-{name}"))
    text = site.config.read_text()
    site.config.write_text(text.replace(f"replicas: {{name: {NAMES[0]}}}", f"replicas: {{name: {name}}}"))
    site.netboot("config", "bundle")
    return site


def _apply(kubectl: Kubectl, folder: Path, name: str, text: str) -> None:
    file = folder / f"{name}.yaml"
    file.write_text(text)
    kubectl("apply", "--server-side", "-f", str(file))
