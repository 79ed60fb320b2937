"""What the demo does after the first boot: a second image, a rollout to it, and the boot that it takes."""

from pathlib import Path
from typing import Any

from rich.markup import escape

from lab.demo.joining import Joining
from lab.demo.progress import CHANNEL, NAME, Demo, short
from lab.demo.steps import Power, build_image, follow
from lab.demo.summary import Shown
from lab.kube.kubectl import POD
from lab.kube.recipe import ARGUMENT, second_recipe
from lab.service import Service
from lab.site import Site

TURN_SECONDS = 120.0
"""From the rollout's start until the machine's turn has come, and boot servers know."""


def rolled(demo: Demo, site: Site, running: Service, join: Joining, power: Power, first: dict[str, Any]) -> Shown:
    """Bring the machine to another image than `first`, which it runs, and in service with it."""
    image = _second_image(demo, site, join, first)
    name = image["manifest"]["name"]
    order = ("rollout", "start", CHANNEL, name, "--bake", "0s", "--on-next-boot")
    with demo.doing(f"the operator runs: netboot {' '.join(order)}"):
        _tell(demo, site.netboot(*order))
        running.wait_until(f"the turn of {NAME} has come", lambda: _its_turn(running, image["image"]), TURN_SECONDS)
        _tell(demo, f"netboot explain {NAME}: {_why(running)}")
    with demo.doing(f"the operator takes its Pod away (kubectl delete pod {POD}), then its power, and gives that back"):
        demo.say("    a rollout with --on-next-boot reboots nothing; the lab switches the machine off and on")
        join.kubectl("delete", "pod", POD)
        power.off()
        power.on()
        follow(demo, running, image, join)
    rows = join.run_a_pod(demo.boots[-1].events)
    look = ("rollout", "status", CHANNEL, "--follow")
    with demo.doing(f"the operator runs: netboot {' '.join(look)}"):
        said = site.netboot(*look)
        _tell(demo, said.strip())
    reached = demo.boots[-1].trace()
    title = f"{NAME} was rebooted for its rollout; {reached[-1].at:.0f} seconds later it is a Ready node again"
    about = [("image", f"{name} {image['image'][:12]}"), ("differs", f"by {ARGUMENT}; {demo.built}")]
    return Shown(title, reached, [*about, *rows, ("rollout", _end(said))])


def _second_image(demo: Demo, site: Site, join: Joining, first: dict[str, Any]) -> dict[str, Any]:
    recipe = second_recipe(Path(join.recipe), first["manifest"]["name"], demo.folder / "recipe")
    with demo.doing(f"building a second image: netboot image build {short(recipe)}"):
        image = build_image(demo, site, str(recipe))
        demo.say(f"    the first and {ARGUMENT}; {demo.built}")
    return image


def _its_turn(running: Service, image: str) -> bool:
    """Whether the rollout names the machine, and it would boot this image now."""
    (rollout,) = running.api("/v1/rollouts")["rollouts"]
    decision = running.api(f"/v1/machines/{NAME}/explain")["decision"]
    return bool(rollout["to_reboot"] == [NAME] and decision["image"]["digest"] == image)


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
