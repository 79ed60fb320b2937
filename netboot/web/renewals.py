"""Before a rollout begins: whether the service can drain and reboot its machines."""

from images.values.faults import first_few
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.published import View
from netboot.lifecycle.rollout_orders import BY_SOMEBODY
from netboot.lifecycle.rollout_store import Members
from netboot.web.dependencies import dependencies
from netboot.web.drains import hindered


def require_renewals(view: View, members: Members) -> None:
    """Raises RolloutRefusedError: the service cannot drain and reboot one of these machines."""
    known = dependencies().issuer
    clusters = set(known.clusters) if known is not None else set()
    of = {machine.name: machine.cluster for machine in view.snapshot.inventory.machines if machine.name in members}
    alone = [name for name, cluster in of.items() if cluster not in clusters]
    if alone:
        words = f"{first_few(sorted(alone))}: {'it joins' if len(alone) == 1 else 'they join'} no cluster"
        raise RolloutRefusedError(f"{words}, and nobody there takes an order to reboot; {BY_SOMEBODY}")
    if problems := hindered({cluster for cluster in of.values() if cluster is not None}):
        raise RolloutRefusedError(f"machines cannot be drained now: {problems[0]}; {BY_SOMEBODY}")
