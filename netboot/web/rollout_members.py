"""A rollout's machines: in pages, state by state where states are asked for, else by name; and what stands of each."""

from collections.abc import Mapping, Sequence

from netboot.lifecycle.errors import BadClaimError, CannotTellError
from netboot.lifecycle.rollout import Member, MemberState, Rollout
from netboot.lifecycle.rollout_store import After, RolloutStore
from netboot.web import pages, render
from netboot.web.drains import how_far
from netboot.web.rollout_shapes import MembersAsked, MemberShown
from netboot.web.shapes import DrainShown

ALL = 2**31


def page_of(store: RolloutStore, number: int, query: MembersAsked) -> tuple[Sequence[Member], str | None]:
    """Those that were asked for, and what to go on with; None: that was the end. It goes on after a name, whether that
    machine is still there or not.

    Raises:
        BadClaimError: `continue` is of no answer to that question. StateUnavailableError.
    """
    most = query.limit if query.limit is not None else ALL
    after = _after(query.after, query.state) if query.after is not None else None
    found = store.part(number, query.state, after, most + 1)
    page = found[:most]
    if len(found) == len(page):
        return page, None
    return page, pages.written(f"{page[-1].state if query.state else ''}/{page[-1].machine}")


def _after(text: str, asked: Sequence[MemberState]) -> After:
    state, there, machine = pages.read(text).partition("/")
    if there and machine and (state in asked if asked else not state):
        return After(MemberState(state) if asked else None, machine)
    raise BadClaimError("is of another question: begin again without it", field="continue")


def with_orders(rollout: Rollout, members: Sequence[Member]) -> tuple[MemberShown, ...]:
    """The drain that stands of each, while the rollout is under way."""
    orders = _orders() if rollout.under_way and members else {}
    return tuple(render.grown(MemberShown, each, order=orders.get(each.machine)) for each in members)


def _orders() -> Mapping[str, DrainShown]:
    """What stands of machines; nothing where that cannot be told."""
    try:
        return how_far()
    except CannotTellError:
        return {}
