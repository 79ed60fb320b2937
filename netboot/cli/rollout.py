"""`netboot rollout`: bring a channel's machines to another image, a few at a time. Asks the running service."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import complete
from netboot.cli.channel import preflight
from netboot.cli.client import UNKNOWN, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.moves import moved_just_now, not_meanwhile, tag_of
from netboot.cli.output import show
from netboot.cli.rollout_shown import COLUMNS, ON_THEIR_WAY, follow, ordered, print_one, row, started
from netboot.cli.times import duration_option, moment

if TYPE_CHECKING:
    from netboot.client.models import Order, RolloutActed, Start

HISTORY_SHOWN = 20


@click.group()
def group() -> None:
    """Bring machines of a channel to another image, a few at a time.

    First the canaries, in different racks, then everybody, never more of them out of service than you allow. It stops
    by itself where machines do not come back.

    \b
      netboot rollout start stable debian-12-minimal
      netboot rollout status stable
    """


@group.command()
@click.argument("channel", shell_complete=complete.channels)
@click.argument("image", shell_complete=complete.images)
@click.option("--canary", type=click.IntRange(2, 1000), help="How many machines try it first.")
@click.option("--max-unavailable", metavar="N|N%", help="How many machines may be out of service at once.")
@click.option("--per-rack", type=click.IntRange(1), help="How many of one rack.")
@duration_option("--bake", None, "0s", "168h", "How long the canaries have to be in service with it.")
@duration_option("--deadline", None, "1m", "168h", "How long a machine may be drained, and then until it is back.")
@click.option("--allow-bare/--no-allow-bare", default=None, help="Evict Pods without a controller too: they are lost.")
@click.option(
    "--allow-local-data/--no-allow-local-data", default=None, help="Evict Pods with an emptyDir too: it is lost."
)
@click.option(
    "--split-domains/--no-split-domains", default=None, help="Machines of one NVLink domain may go one by one."
)
@click.option("--auto-undo/--no-auto-undo", default=None, help="Undo it, where it would pause for a bad image.")
@click.option("--control-plane", multiple=True, metavar="NAME", help="A machine of a control plane that is to go too.")
@click.option("--on-next-boot", is_flag=True, help="Assign the image; somebody else reboots the machines.")
@dry_run_option
@click.option("--force", is_flag=True, help="Also where machines of a class lack the memory for it.")
@click.option("--any-kubelet", is_flag=True, help="Also where a cluster does not take its kubelet, or cannot be asked.")
@click.option("--reason", default="", help="Why, for its history.")
@api_command
def start(
    channel: str,
    image: str,
    *,
    control_plane: tuple[str, ...],
    on_next_boot: bool,
    dry_run: bool,
    force: bool,
    any_kubelet: bool,
    reason: str,
    **options: Any,
) -> None:
    """Begin to bring the machines of CHANNEL to IMAGE.

    What is not said is as `strategy` of the channel has it in the inventory, else 2 canaries, 5% at once, 30m and 30m.
    Each machine is drained and rebooted when its turn comes, as `netboot machine reboot` does it; with --on-next-boot
    whoever operates the machines reboots those that `netboot rollout status` names. Until it is complete the channel
    points to the image before it, which new machines boot.

    Where too many machines fail with the image it is paused; with --auto-undo it is undone, if these are in two racks.

    Machines of a control plane keep what they have, unless --control-plane names them, once for each: these go last,
    one at a time, and only while the others of their control plane are in order.

    It is refused where a cluster's API server, asked now, is older than the image's kubelet or too new for it.

    \b
      netboot rollout start stable debian-12-minimal --canary 2 --max-unavailable 5%
    """
    connection, output = options.pop("connection"), options.pop("output")
    client = connection.open()
    seen = tag_of(client, channel)
    preflight(connection, channel, image, output, force=force)
    strategy = {name: value for name, value in options.items() if value is not None}
    body: Start = {"channel": channel, "image": image, "on_next_boot": on_next_boot, "reason": reason}
    body |= {"strategy": strategy, "force": force, "any_kubelet": any_kubelet, "dry_run": dry_run}
    body |= {"control_plane": list(control_plane)} if control_plane else {}
    with not_meanwhile(moved_just_now(channel)):
        begun = client.rollouts.start(body, if_match=seen)
    show(output, begun, (), (), "\n".join(started(begun, dry_run=dry_run)))


@group.command()
@click.argument("channel", required=False, shell_complete=complete.channels)
@click.option("--follow", "watched", is_flag=True, help="Until it has ended or is paused, with a bar on a terminal.")
@api_command
def status(channel: str | None, watched: bool, connection: Connection, output: str) -> None:
    """Show what is under way; of CHANNEL its last rollout, who is drained or rebooting, and what they wait for.

    With --follow the status is 0 where it is complete, or undone where an operator had ordered that before; else 1.

    \b
      netboot rollout status
      netboot rollout status stable --follow
    """
    client = connection.open()
    if channel is None:
        if watched:
            raise click.UsageError("--follow wants a channel: name one")
        under_way = [each for each in _all(client) if each["state"] in ("running", "paused")]
        show(
            output,
            {"rollouts": under_way},
            COLUMNS,
            map(row, under_way),
            "no rollout is under way",
            names=numbers(under_way),
        )
        return
    before = _last(client, channel)
    number = before["number"]
    if watched:
        follow(client, number)
    if output == "json":
        rollout = client.rollouts.get(number)
    else:
        rollout = client.rollouts.get(number, members=False)
        there = {each["machine"]: each for each in client.rollouts.each_members(number, state=ON_THEIR_WAY)}
        rollout["members"] = list(there.values())  # the state that was told last, of one that changed it meanwhile
    print_one(output, rollout)
    ordered_back = before["undoing"] and not before.get("verdict")  # who waits for the image has not got it else
    wanted = "undone" if ordered_back else "complete"
    if watched and rollout["state"] != wanted:
        raise click.exceptions.Exit(1)


def _order(name: str, how: "Callable[[Client], Callable[[int, Order], RolloutActed]]", help_: str) -> click.Command:
    @click.argument("channel", shell_complete=complete.channels)
    @click.option("--reason", default="", help="Why, for its history.")
    @dry_run_option
    @api_command
    def order(channel: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
        client = connection.open()
        number = _last(client, channel)["number"]
        rollout = how(client)(number, {"reason": reason, "dry_run": dry_run})
        show(output, rollout, (), (), ordered(rollout))

    order.__doc__ = f"{help_}{order.__doc__ or ''}"
    return click.command(name)(order)


for _command in (
    _order(
        "pause",
        lambda client: client.rollouts.pause,
        """Let no further machine's turn come. Those that were not rebooted yet boot what they had; those that are on
    their way are waited for, and those that are being drained are let go.

    \b
      netboot rollout pause stable --reason "the network is being worked on"
    """,
    ),
    _order(
        "resume",
        lambda client: client.rollouts.resume,
        """Let it go on. Machines that failed until now stop it no more.

    \b
      netboot rollout resume stable
    """,
    ),
    _order(
        "undo",
        lambda client: client.rollouts.undo,
        """Let every machine boot what it had, from now on. Those that run the other image are drained and rebooted, a
    few at a time; of a rollout with --on-next-boot `netboot rollout status` names them.

    \b
      netboot rollout undo stable
    """,
    ),
):
    group.add_command(_command)


@group.command()
@click.argument("channel", required=False, shell_complete=complete.channels)
@click.option("--limit", type=click.IntRange(1, 200), default=HISTORY_SHOWN, show_default=True, help="How many.")
@api_command
def history(channel: str | None, limit: int, connection: Connection, output: str) -> None:
    """List rollouts, the newest first; of CHANNEL alone with what was done to each.

    \b
      netboot rollout history
      netboot rollout history stable
    """
    client = connection.open()
    rollouts = client.rollouts.list(limit=200)["rollouts"]
    if channel is None:
        shown = rollouts[:limit]
        show(output, {"rollouts": shown}, COLUMNS, map(row, shown), "there was no rollout yet", names=numbers(shown))
        return
    of_channel = [each for each in rollouts if each["channel"] == channel][:limit]
    full = [dict[str, Any](client.rollouts.get(each["number"], members=False)) for each in of_channel]
    for each in full:
        del each["members"], each["by_rack"]
    rows = [
        (each["number"], moment(entry["at"]), entry["who"], entry["act"], entry["said"])
        for each in full
        for entry in each["history"]
    ]
    show(
        output,
        {"rollouts": full},
        ("rollout", "when", "who", "what", "why"),
        rows,
        "there was no rollout of it yet",
        names=numbers(full),
    )


def numbers(rollouts: Sequence[Mapping[str, Any]]) -> list[int]:
    """What they are called."""
    return [each["number"] for each in rollouts]


def _all(client: Client) -> Sequence[Mapping[str, Any]]:
    rollouts: Sequence[Mapping[str, Any]] = client.rollouts.list(limit=200)["rollouts"]
    return rollouts


def _last(client: Client, channel: str) -> Mapping[str, Any]:
    for each in _all(client):
        if each["channel"] == channel:
            return each
    raise ApiError(f"there was no rollout of channel {channel} yet", "see `netboot rollout history`", UNKNOWN)
