"""Whom custom resources are asked of, where they are kept, and when what went of them is not believed."""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple, Protocol

from images.values.faults import first_few
from netboot.clock import rfc3339
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.resources import Resource, Seen

REMEDY = (
    "see whether the API server answers, and has what `netboot cluster crds` and `netboot cluster manifests "
    "--inventory` print; `netboot cluster kubeconfigs --inventory` makes a new token; machines boot meanwhile"
)
FULL = "see whether the disk that has `data` is full, or hangs"
FEWER = "delete objects that are not meant, and bound how many there may be by a ResourceQuota"


class Follows(Protocol):
    """Who sees custom resources: `netboot.kube.custom_resources`."""

    def watch(self, kind: str, seconds: float) -> Iterator[Seen]:
        """All of a kind, then what becomes of each; raises ClusterUnavailableError."""
        ...

    def uid(self) -> str:
        """Of the namespace; "": not known. Raises ClusterUnavailableError."""
        ...

    def kinds(self) -> Set[str]:
        """Those that are not being removed with all their objects; raises ClusterUnavailableError."""
        ...


class Keeps(Protocol):
    """Where they are on the disk: `netboot.stores.resources`."""

    uid: str
    """Of the namespace that they are of; "": not known."""

    def write(self, objects: tuple[Resource, ...], uid: str, at_ms: int) -> None:
        """Durable when it returns; raises StoreError, or TooMuchError."""
        ...

    def stands(self) -> bool:
        """Whether the file is the one that was written, or read, last."""
        ...


def _never(_resource: Resource) -> bool:
    return False


class Tied(NamedTuple):
    """Of objects each of which is an act: nothing that went is believed of a namespace, or a definition, that was made
    anew since, for then all went with it. `anew`: what to do then; `over(resource)`: whether it has come to its end, so
    that it may go."""

    anew: str
    over: Callable[[Resource], bool] = _never


def unbelieved(before: Sequence[Resource], now: Sequence[Resource], connected: Callable[[], Follows]) -> str:
    """Why of `before` something that is not there `now` is kept: with the definition of its kind, or with the
    namespace, all objects go, and nobody meant them. Empty: all that went was deleted for itself."""
    there = {resource.shown for resource in now}
    return going({resource.kind for resource in before if resource.shown not in there}, connected)


def going(kinds: Set[str], connected: Callable[[], Follows]) -> str:
    """Why what is not there of these kinds is no deletion; empty: it is one."""
    try:
        going = kinds - connected().kinds() if kinds else ()
    except CannotTellError as error:
        return f"whether objects that went were meant cannot be told: {error}"
    if not going:
        return ""
    return (
        f"the API server has removed objects with the definition of their kind, or with their namespace, and nobody "
        f"meant them: {', '.join(sorted(going))}"
    )


def unmeant(
    kept: str, before: Sequence[Resource], now: Sequence[Resource], connected: Callable[[], Follows], tied: Tied
) -> str:
    """As `unbelieved`, of `tied` ones. `kept`: the uid of before."""
    before, there = [each for each in before if not tied.over(each)], {each.shown for each in now}
    gone = sorted(resource.shown for resource in before if resource.shown not in there)
    try:
        of = connected().uid() if gone else kept
    except CannotTellError as error:
        return f"whether objects that went were meant cannot be told: {error}"
    if elsewhere(kept, of):
        return (
            f"objects went with their namespace, or with the definition of their kind, and nobody meant them: "
            f"{first_few(gone)}; {tied.anew}"
        )
    return unbelieved(before, now, connected)


def remedy(*, followed: bool, too_much: bool) -> str:
    """What to do where custom resources are not as the API server has them. `followed`: it is about whom they are asked
    of; `too_much`: they are more than are kept."""
    return REMEDY if followed else FEWER if too_much else FULL


def told(problem: str, seen_ms: int | None) -> str:
    """With which moment what counts is of. `seen_ms`: milliseconds since 1970; None: not known."""
    if seen_ms is None:
        return f"{problem}; nobody can tell of which moment what counts is"
    return f"{problem}; what counts is what there was at {rfc3339(seen_ms, 'seconds')}"


def elsewhere(kept: str, now: str) -> str:
    """What is to be said where objects on the disk are another namespace's than the one that is followed, of another
    cluster, say. `kept`, `now`: uids; "": not known."""
    if not kept or not now or kept == now:
        return ""
    return f"what is on the disk is of another namespace of that name (uid {kept}, and now {now})"


class Beside:
    """Of one kind, what there is beside what went and is not believed to be gone: that keeps out nobody that came."""

    def __init__(self) -> None:
        self._of, self._came = "", set[tuple[str, str]]()
        """Names and uids of those that came since objects are of this namespace and definition."""

    def all(
        self, before: Sequence[Resource], now: Sequence[Resource], connected: Callable[[], Follows]
    ) -> tuple[Resource, ...]:
        """By their names. `before`: as this had it last. Of those that came since, those that went are gone, where
        their definition is not going, too: else who makes and deletes some would have all of them kept."""
        there = {each.name for each in now}
        try:
            of, kinds = connected().uid(), {each.kind for each in before}
            if of != self._of:
                self._of, self._came = of, set()
            gone = self._came if not going(kinds, connected) else set()
        except CannotTellError:
            gone = set()
        found = {each.name: each for each in before if each.name in there or (each.name, each.uid) not in gone}
        self._came |= {(each.name, each.uid) for each in now} - {(each.name, each.uid) for each in before}
        found |= {each.name: each for each in now}
        return tuple(found[name] for name in sorted(found))
