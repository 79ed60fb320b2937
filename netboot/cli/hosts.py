"""Which machines of the inventory a test of the fabric is about."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from images.errors import NotFoundError
from netboot.cli import complete
from netboot.cli.outcomes import NOT_ALLOWED, UNKNOWN, ApiError
from netboot.cli.paths import Paths, paths_options
from netboot.machines.values import Machine
from netboot.stores.inventory import declarations_of

RACK_LABEL = "topology.kubernetes.io/rack"
Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator said: names, or what they have in common."""

    names: Sequence[str]
    rack: str | None
    rack_label: str
    class_name: str | None
    all_: bool

    def machines(self, paths: Paths) -> list[Machine]:
        """Those that are enabled, in the inventory's order.

        Raises:
            click.UsageError: nothing is chosen, fewer than two, or two ways at once. ApiError: no such machine, or one
            that may not boot. NotFoundError: no site. images.values.strict.FaultsError: the inventory has faults.
        """
        ways = [bool(self.names), self.rack is not None, self.class_name is not None, self.all_]
        if sum(ways) != 1:
            raise click.UsageError("say which machines: names, --rack, --class or --all, one of them")
        inventory = paths.declared()
        if inventory is None:
            raise NotFoundError("no configuration here: change into the folder of a site, or give --config")
        declared = inventory.machines
        known = {machine.name: machine for machine in declared}
        for name in self.names:
            if name not in known:
                said = f"no machine is named {name!r}{_hint(name, list(known))}"
                raise ApiError(said, f"see the names in {declarations_of(paths.configured).where}", UNKNOWN)
            if not known[name].enabled:
                raise ApiError(f"{name} may not boot (`enabled: false` in the inventory)", "leave it out", NOT_ALLOWED)
        chosen = [machine for machine in declared if machine.enabled and self._is(machine)]
        if len(chosen) < 2:
            few = f"{len(chosen)} of {len(declared)} machines are chosen"
            raise click.UsageError(f"{few}, and a pair needs two: choose more{self._remedy()}")
        return chosen

    def _is(self, machine: Machine) -> bool:
        if self.rack is not None:
            return machine.node.labels.get(self.rack_label) == self.rack
        if self.class_name is not None:
            return machine.class_name == self.class_name
        return self.all_ or machine.name in self.names

    def _remedy(self) -> str:
        return f" (a machine's rack is its node's label {self.rack_label})" if self.rack is not None else ""


def _hint(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def hosts_options(function: Command) -> Command:
    """Add MACHINES, `--rack`, `--rack-label`, `--class`, `--all` and `--config`: the command gets `choice`, `paths`."""

    @wraps(function)
    def command(
        machines: tuple[str, ...], rack: str | None, rack_label: str, class_name: str | None, all_: bool, **others: Any
    ) -> None:
        function(choice=Choice(machines, rack, rack_label, class_name, all_), **others)

    command = click.option("--all", "all_", is_flag=True, help="Every machine of the inventory.")(command)
    command = click.option("--class", "class_name", help="The machines of a class.")(command)
    help_ = "Which label of a node says its rack."
    command = click.option("--rack-label", default=RACK_LABEL, show_default=True, help=help_)(command)
    command = click.option("--rack", help="The machines of a rack, by the labels of their nodes.")(command)
    return click.argument("machines", nargs=-1, shell_complete=complete.machines)(
        paths_options(store=False, keys=False)(command)
    )
