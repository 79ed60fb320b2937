"""May one more machine of this rack, and of all, go out of service now? The one rule, of whatever takes machines out on
purpose, and who fills the places by whose word. Pure. docs/drain.md.

Who asks says how many may be out (a rollout's strategy, the remedies of a class); who is out is the same for all of
them, whoever brought it about.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from images.values.faults import first_few
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.remedies import OWNED
from netboot.lifecycle.transitions import Mark

BY_ITSELF = "by itself"
"""Nobody's word keeps it out: it is not Ready, or on its way."""


class Out(NamedTuple):
    """A machine that is out of service, or is ordered to be. `rack` "": it has none; `by`: by whose word."""

    rack: str
    by: str


class Refusal(NamedTuple):
    """Why no further machine may go. `limit`: what may be; `out`: how many are, by whose word: both in words, and the
    latter changes all the time; `who`: these machines."""

    limit: str
    out: str
    who: Collection[str]

    def __str__(self) -> str:
        return f"{self.limit}{self.out}"


class Places:
    """Those that may be out of service at once, and who is. `most`: of those counted in `out`; `per_rack`: of one rack,
    None: as many; `near`: others that are out, which count in their racks alone; `said_by`: whose limits they are;
    `alone`: whoever goes, nobody of `out` may be out then."""

    def __init__(
        self,
        most: int,
        per_rack: int | None,
        out: Mapping[str, Out],
        near: Mapping[str, Out] | None = None,
        said_by: str = "",
        *,
        alone: bool = False,
    ) -> None:
        self._most, self._per_rack, self._said_by, self._alone = most, per_rack, said_by, alone
        self._out, self._near = dict(out), {name: each for name, each in (near or {}).items() if name not in out}
        self._racks = Counter(each.rack for each in (*self._out.values(), *self._near.values()))

    def fits(self, *racks: str) -> bool:
        """Whether one more of each of these racks may go, together."""
        if len(self._out) + len(racks) > self._most or (self._alone and self._out):
            return False
        return self._full(racks) is None

    def _full(self, racks: Collection[str]) -> str | None:
        """The first of these racks that has no room for its part."""
        if self._per_rack is None:
            return None
        wanted = Counter(racks).items()
        return next((rack for rack, count in wanted if self._racks[rack] + count > self._per_rack), None)

    def take(self, machine: str, out: Out) -> None:
        """It goes."""
        self._out[machine] = out
        self._racks[out.rack] += 1

    def refusal(self, *racks: str) -> Refusal | None:
        """Why these may not; None: they may."""
        if self.fits(*racks):
            return None
        if len(self._out) + len(racks) > self._most:
            return _refusal(_limit(self._most, "", self._said_by), self._out)
        if self._alone and self._out:
            return _refusal("no machine may go while another one is out of service", self._out)
        rack = self._full(racks)
        here = {name: each for name, each in (self._out | self._near).items() if each.rack == rack}
        assert self._per_rack is not None  # or they fit
        where = f" of rack {rack}" if rack else " without a rack"
        return _refusal(_limit(self._per_rack, where, self._said_by), here)


def _limit(most: int, where: str, said_by: str) -> str:
    return f"no more than {most} machine{'' if most == 1 else 's'}{where} may be out of service{said_by}"


def _refusal(limit: str, out: Mapping[str, Out]) -> Refusal:
    said = f", and {len(out)} {'is' if len(out) == 1 else 'are'}: {named(out)}" if out else ""
    return Refusal(limit, said, out.keys())


def named(out: Mapping[str, Out]) -> str:
    """The first few of them, each with by whose word."""
    return first_few([f"{name} ({out[name].by})" for name in sorted(out)])


def by_whom(drains: Iterable[Drain], intents: Iterable[Intent]) -> dict[str, str]:
    """Machine → by whose word it is out: an order that stands, a hold, a quarantine. Who is accepted is not out."""
    marked = {each.machine: _by(each.owner, each.who) for each in intents if isinstance(each.mark, Mark)}
    return marked | {each.machine: _by(each.owner, each.who) for each in drains}


def slots(drains: Iterable[Drain], intents: Iterable[Intent]) -> set[str]:
    """What these words are, each by a name of its own: by it whoever has counted knows whether there is another."""
    marks = {f"{each.machine} {each.mark} {each.owner}" for each in intents if isinstance(each.mark, Mark)}
    return marks | {each.id for each in drains}


def _by(owner: str, who: str) -> str:
    return f"by remedy {owner.removeprefix(OWNED)}" if owner.startswith(OWNED) else f"by {who}"


def in_service(judged: Judged) -> bool:
    """Whether it is; where it joins no cluster, whether it is up, by whoever says so: nothing else is to be had."""
    service, booted = judged.condition(ConditionType.IN_SERVICE), judged.condition(ConditionType.BOOTED)
    if service is not None and service.reason is Reason.NO_CLUSTER:
        return booted is not None and booted.status == "True"
    return service is not None and service.status == "True"


def fills_a_place(judged: Judged) -> bool:
    """Whether a machine is out of service that was, or may be, in it: not one that never booted, or is retired."""
    service = judged.condition(ConditionType.IN_SERVICE)
    retired = service is not None and service.reason is Reason.RETIRED
    return bool(judged.boot) and not retired and not in_service(judged)
