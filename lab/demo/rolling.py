"""What the demo does after the first boot: a second image, and a rollout to it, which drains the machine and has it
reboot itself."""

import json
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Any

from rich.markup import escape

from lab.demo.joining import Joining
from lab.demo.progress import CHANNEL, NAME, Boot, Demo, short
from lab.demo.steps import build_image, follow
from lab.demo.summary import Shown
from lab.kube.recipe import ARGUMENT, second_recipe
from lab.service import Service
from lab.site import Site
from netboot.join.node_drains import ORDER

DRAIN_SECONDS = 180.0
"""From the rollout's start until the machine's Pod is gone, and it is told to reboot."""
TAKE_SECONDS = 180.0
"""Until it takes the order, for which it looks each half a minute."""
DOWN_SECONDS = 180.0
"""For systemd to stop all that runs, in software emulation."""


def rolled(
    demo: Demo,
    running: Service,
    join: Joining,
    first: dict[str, Any],
    publish: Callable[[dict[str, Any]], None],
) -> Shown:
    """Bring the machine to another image than `first`, which it runs, and in service with it; nobody touches it.
    `publish`: takes that image to where else it is needed."""
    site = running.site
    image = _second_image(demo, site, join, first)
    publish(image)
    name = image["manifest"]["name"]
    start = ("rollout", "start", CHANNEL, name, "--bake", "0s")
    with demo.doing(f"the operator runs: netboot {' '.join(start)}"):
        _tell(demo, site.netboot(*start))
    with demo.doing(f"{NAME} is drained, and told to reboot"):
        order = _order(demo, running, join)
        _tell(demo, f"netboot explain {NAME}: {_why(running)}")
    with demo.doing(f"{NAME} takes the order, and reboots by itself"):
        _taken(demo, order["slot"])
        follow(demo, running, image, join)
    rows = join.hear_the_pod(demo.boots[-1].events)
    look = ("rollout", "status", CHANNEL, "--follow")
    with demo.doing(f"the operator runs: netboot {' '.join(look)}"):
        said = site.netboot(*look)
        _tell(demo, said.strip())
    reached = demo.boots[-1].trace()
    title = f"{NAME} rebooted itself for its rollout; {reached[-1].at:.0f} seconds later it is a Ready node again"
    about = [
        ("image", f"{name} {image['image'][:12]}"),
        ("differs", f"by {ARGUMENT}; {demo.built}"),
        ("order", f"{order['what']} {order['slot']}, for boot {order['boot']} alone, on its own Node"),
    ]
    return Shown(title, reached, [*about, *rows, ("rollout", _end(said))])


def _second_image(demo: Demo, site: Site, join: Joining, first: dict[str, Any]) -> dict[str, Any]:
    recipe = second_recipe(Path(join.recipe), first["manifest"]["name"], demo.folder / "recipe")
    with demo.doing(f"building a second image: netboot image build {short(recipe)}"):
        image = build_image(demo, site, str(recipe))
        demo.say(f"    the first and {ARGUMENT}; {demo.built}")
    return image


def _order(demo: Demo, running: Service, join: Joining) -> dict[str, Any]:
    """Tell how far the machine's drain is, until it is told to reboot; the order, as it stands on its Node."""
    told: set[str] = set()

    def ordered() -> bool:
        state = next((each["state"] for each in running.api("/v1/drains")["drains"]), None)
        if state is None:  # it is not its turn yet, or nobody has said how far it is
            return False
        if state["words"] not in told:
            told.add(state["words"])
            _tell(demo, f"netboot machine drains: {state['state']}: {state['words']}")
        return bool(state["state"] == "ordered")

    running.wait_until(f"{NAME} is told to reboot", ordered, DRAIN_SECONDS)
    said: str = join.kubectl.get("node", NAME)["metadata"]["annotations"][ORDER]
    _tell(demo, f"on its own Node: {ORDER}={said}")
    order: dict[str, Any] = json.loads(said)
    return order


def _taken(demo: Demo, slot: str) -> None:
    """The machine says that it reboots by this very order, and does: another boot begins."""
    assert demo.machine is not None
    said = demo.machine.wait_for_console(rf"netboot-reboot: rebooting, by order {slot}\b", TAKE_SECONDS)
    _tell(demo, f"its console: {said[0]}")
    down = demo.machine.wait_for_console("reboot: Restarting system", DOWN_SECONDS, after=said.end())
    _tell(demo, f"its console: {down[0]}")
    demo.boots.append(Boot(time()))


def _why(running: Service) -> str:
    """By whose word it boots the image that it would boot now."""
    because: list[str] = running.api(f"/v1/machines/{NAME}/explain")["decision"]["because"]
    return next(line for line in because if line.startswith("rollout "))


def _end(status: str) -> str:
    """What `netboot rollout status` says of its state."""
    return next(line.split(maxsplit=1)[1] for line in status.splitlines() if line.startswith("state "))


def _tell(demo: Demo, said: str) -> None:
    for line in said.splitlines():
        demo.say(f"    {escape(line)}" if line else "")
