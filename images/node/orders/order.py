"""An order on this machine's own Node, and whether it is alive. Pure.

The service writes it, and admission lets nobody else (docs/drain.md). It names one machine, one boot and one end, so
that one which was delayed, is read again by the next boot, or stands on another Node reboots nobody.
"""

import json
from typing import Any, NamedTuple

from ..agent.net import plain

ORDER, DRAIN = "netboot.dev/order", "netboot.dev/drain"
"""An annotation; the taint without which no order counts, its value DRAINED."""
DRAINED = "Drained"
LONGEST_SECONDS = 3600
"""From now to the end of an order: one that ends later is none of the service's, or the clock of one of us is wrong."""


class Here(NamedTuple):
    """This machine, its running boot, and the time of day in seconds since 1970."""

    machine: str
    boot: str
    now: float


class Verdict(NamedTuple):
    """`slot`: the order's own name; `dead`: why it is not to be taken; "": it is."""

    slot: str
    dead: str


def judged(node: Any, here: Here) -> Verdict | None:
    """What the order on a Node comes to; None: there is none."""
    text = _of(_of(_of(node, "metadata"), "annotations"), ORDER)
    if text is None:
        return None
    order = _parsed(text)
    if order is None:
        return Verdict("", "the order on this Node cannot be read")
    slot = order["slot"]
    return Verdict(slot, plain(_dead(order, node, here)))


def _dead(order: dict[str, Any], node: Any, here: Here) -> str:
    slot, left = order["slot"], order["expires"] - here.now
    if order["what"] != "reboot":
        return f"order {slot} is to {order['what']}, and this image can reboot alone"
    if order["machine"] != here.machine:
        return f"order {slot} is for {order['machine']}, and this is {here.machine}"
    if order["boot"] != here.boot:
        return f"order {slot} is for boot {order['boot']}, and this is boot {here.boot}"
    if left <= 0:
        return f"order {slot} expired {here.now - order['expires']:.0f} s ago"
    if left > LONGEST_SECONDS:
        return f"order {slot} expires in {left:.0f} s, which is too far away to be believed"
    if not _drained(node):
        return f"order {slot} stands on a Node without the taint {DRAIN}={DRAINED}:NoSchedule"
    return ""


def _drained(node: Any) -> bool:
    taints = _of(_of(node, "spec"), "taints")
    wanted = (DRAIN, DRAINED, "NoSchedule")
    listed = taints if isinstance(taints, list) else []
    return any((_of(one, "key"), _of(one, "value"), _of(one, "effect")) == wanted for one in listed)


def _parsed(text: Any) -> dict[str, Any] | None:
    try:
        order = json.loads(text) if isinstance(text, str) and len(text) <= 2000 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(order, dict) or not all(
        isinstance(order.get(name), str) for name in ("machine", "boot", "slot", "what")
    ):
        return None
    expires = order.get("expires")
    return order if isinstance(expires, int) and not isinstance(expires, bool) else None


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
