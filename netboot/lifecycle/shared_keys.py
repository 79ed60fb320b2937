"""The keys that replicas share, as a Secret has them; and which change of them a replica takes.

What a replica seals, all others must open. So a key goes only where the Secret says that it went: what it lacks
otherwise was lost there, or it is another site's, or another cluster's that was built anew.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from images.values.strict import Strict
from netboot.config_outside import BOOT_IDS, NONCES, SEALING

WORDS = {SEALING: "sealing keys", NONCES: "nonce keys", BOOT_IDS: "key of boot ids"}
"""By the names that the Secret has."""
KEEP_SECONDS = {SEALING: 180, NONCES: 660}
"""For how long a key opens after no replica seals with it any more: longer than what was sealed lives."""


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """As an API server has it. `retired`: ids of keys that it had, and that are to go; `made`: of keys that it has,
    when, RFC 3339."""

    uid: str
    version: str
    data: Mapping[str, str] = field(repr=False)
    retired: frozenset[str] = frozenset()
    made: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ids:
    """Of a Secret's keys, by its names for them; they tell nothing of the keys. Of keysets the first seals."""

    of: Mapping[str, tuple[str, ...]]


class InUse(Strict):
    """What a replica says of itself. `at`: when, by its clock; `sealing`, `nonces`: ids of keys, of which the first
    seals, and for how many seconds it has done so; `boot_ids`: a mark of that key."""

    at: str
    sealing: tuple[str, ...] = ()
    sealing_for_seconds: int = 0
    nonces: tuple[str, ...] = ()
    nonces_for_seconds: int = 0
    boot_ids: str = ""

    def keys(self, name: str) -> tuple[str, ...]:
        """Of a keyset, by the Secret's name for it."""
        return self.sealing if name == SEALING else self.nonces

    def seals_for(self, name: str) -> int:
        """For how many seconds the first of them has sealed."""
        return self.sealing_for_seconds if name == SEALING else self.nonces_for_seconds


def unbelieved(before: Ids, now: Ids, retired: frozenset[str]) -> str:
    """Why what a Secret has is not taken in the place of what is in use; "": it is. `retired`: what it says is to go,
    where it is the Secret that was read before; of another one nothing is believed but that it has the key."""
    for name, ids in before.of.items():
        there, what = now.of.get(name, ()), WORDS[name]
        if not there:
            return f"it has no {name}, and the {what} of before are in use"
        if ids[0] not in there and (name == BOOT_IDS or ids[0] not in retired):
            does = "is in use" if name == BOOT_IDS else "seals"
            return f"its {name} lacks {ids[0]}, which {does} here, and does not say that it is to go"
    return ""


def come_back(now: Ids, retired: Collection[str]) -> str:
    """Why what a Secret has is not taken, where a key seals there that had been `retired`; "": none does."""
    for name, ids in now.of.items():
        if ids[0] in retired:
            why = "it is as it was before, as after a restore of etcd"
            return f"in its {name} seals {ids[0]} again, which was retired: {why}"
    return ""


def not_learnt(replicas: Mapping[str, InUse], name: str, key: str) -> list[str]:
    """Why this key may not seal yet: a line for each replica that would not open by it."""
    behind = [replica for replica, said in sorted(replicas.items()) if key not in said.keys(name)]
    return [f"{replica} does not have {key} yet" for replica in behind]


def still_needed(replicas: Mapping[str, InUse], name: str, key: str) -> list[str]:
    """Why keys but this one may not go yet: a line for each replica that seals with another, or did so a moment ago."""
    lines = []
    for replica, said in sorted(replicas.items()):
        keys: Sequence[str] = said.keys(name)
        if not keys or keys[0] != key:
            lines.append(f"{replica} does not seal with {key} yet")
        elif said.seals_for(name) < KEEP_SECONDS[name]:
            seconds = f"{said.seals_for(name)} s of {KEEP_SECONDS[name]}"
            lines.append(f"{replica} has sealed with {key} for {seconds}: what it sealed before is still under way")
    return lines
