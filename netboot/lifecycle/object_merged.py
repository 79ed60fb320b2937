"""What the object of a machine is to say of its boots, from what it says and what a replica knows. Pure."""

from collections.abc import Iterable

from netboot.lifecycle.arrivals import credible
from netboot.lifecycle.events import SharedRecord
from netboot.lifecycle.object_boots import MOST_BOOTS, BootTold, boot_told, record_of
from netboot.lifecycle.state import standing
from netboot.lifecycle.trace import apply


def merged(said: Iterable[BootTold], known: Iterable[BootTold], machine: str, now_ms: int) -> tuple[BootTold, ...]:
    """What an object is to say: what it says and what is `known` here, the newest first. What is not of our making is
    left out, and so is what did not prove itself and is older than what did, for it is under way no more. What is known
    better here stays, whatever there is room for: whoever wrote it has to learn of it, or would write it for ever.
    `now_ms`: by our clock."""
    there, better = dict[str, SharedRecord](), set[str]()
    for told in said:
        if (record := record_of(told, machine, 0)) is not None and credible(record.since, now_ms):
            there[told.id] = record
    for told in known:
        record, before = record_of(told, machine, 0), there.get(told.id)
        if record is None:
            continue
        there[told.id] = record if before is None else joined(before, record)
        if before is not None and there[told.id].since != before.since:
            better.add(told.id)
    newest = sorted(there.values(), key=lambda each: (each.boot in better, each.since, each.boot), reverse=True)
    boots = [boot for each in newest if (boot := boot_told(apply(None, each), each.since)) is not None]
    proven = [each for each in boots if each.proven]
    after = max((int(each.since) for each in proven), default=0)
    others = [each for each in boots if not each.proven and (int(each.since) > after or each.id in better)]
    return tuple(sorted((*proven[:MOST_BOOTS], *others[:1]), key=lambda each: (int(each.since), each.id), reverse=True))


def joined(one: SharedRecord, other: SharedRecord) -> SharedRecord:
    """Both, of one boot."""
    facts = tuple(dict.fromkeys((*one.facts, *other.facts)))
    return one.model_copy(update={"facts": facts, "since": since_of(one, other)})


def since_of(one: SharedRecord, other: SharedRecord) -> int:
    """The number of whichever has the higher standing; of one standing the least."""
    mine, its = standing(apply(None, one)), standing(apply(None, other))
    if mine != its:
        return one.since if mine > its else other.since
    return min(one.since, other.since)
