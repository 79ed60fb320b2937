"""The Secret with the keys that replicas share is followed, and its keys are kept on the disk as they were last.

Whatever cannot be told, or is not believed, leaves in use what was there before: `netboot.lifecycle.shared_keys`.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from images.errors import StoreError
from netboot.clock import rfc3339
from netboot.config_outside import BOOT_IDS, NONCES, SEALING
from netboot.controllers.reflector import Reflector
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.shared_keys import Ids, InUse, SeenSecret, come_back, unbelieved
from netboot.logs import Trouble
from netboot.status import DEFECT
from netboot.status.keys import KeysStatus
from netboot.stores.shared_keys import KeptKeys, Record, SharedKeysError, Since, contents, ids_of

log = logging.getLogger(__name__)

ROUND_SECONDS = 300.0
LOOK_SECONDS = 0.25
KEPT_SECONDS = 10.0
"""How often it is written down that the Secret still has these keys; and before a disk is tried again."""
TELL_SECONDS = 30.0
"""Between two words of what is in use, where nothing changed."""
LATE_SECONDS = 60.0
"""A disk, or an API server, that has held up the writing for so long is said."""
AGAIN_SECONDS = 5.0
"""Before a word is said again that was not heard."""
BACK = "to put back what it had, delete it, then `netboot cluster keys push --in-use` here"
REMEDY = (
    "see whether the API server answers, and has the Secret and what `netboot cluster manifests --keys` prints; "
    "`netboot cluster kubeconfigs --keys` makes a new token; docs/ha.md says when what a Secret has is not taken"
)


class Follows(Protocol):
    """Who sees the Secret: `netboot.kube.shared_keys`."""

    def watch(self, seconds: float) -> Iterator[SeenSecret | None]:
        """It, then what becomes of it; None: nothing did. Raises ClusterUnavailableError."""
        ...

    def tell(self, replica: str, said: InUse) -> None:
        """Raises ClusterUnavailableError."""
        ...


class SharedKeysController:
    """Of one Secret: a thread that follows it, and one that writes and tells."""

    def __init__(
        self,
        replica: str,
        secret: str,
        wanted: tuple[str, ...],
        connect: Callable[[], Follows],
        kept: KeptKeys,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`replica`: the name of this one; `secret`: for words; `wanted`: names of keys that this site cannot do
        without. `connect`: to the API server, again until it can be done."""
        self._replica, self._secret, self._wanted = replica, secret, wanted
        self._connect, self._kept, self._clock, self._monotonic = connect, kept, clock, monotonic
        self._lock, self._connecting = threading.Lock(), threading.Lock()
        self._follows: Follows | None = None
        self._seen: SeenSecret | None = None
        self._sign_ms: int | None = None
        """When the API server last said that the Secret is as it was seen."""
        self._made: Mapping[str, bytes] = {}
        self._ids, self._record, self._fault = Ids({}), kept.record(), ""
        self._since: Mapping[str, Since] = self._record.since if self._record is not None else {}
        self._look()
        self._true_ms = self._record.seen_ms if self._record is not None and self._made else None
        self._stepped = monotonic()
        """When it was last looked whether there is something to be written."""
        self._true_at, self._kept_at, self._told_at = monotonic(), float("-inf"), float("-inf")
        self._told: Ids | None = None
        self._untold: str | None = "which keys are in use here has not been said since the start"
        self._again = float("-inf")
        self._trouble = Trouble(log, "shared keys are not taken", "shared keys are those of the Secret again")
        self._stopping = threading.Event()
        seconds = ROUND_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311 - spreads lists
        self._reflector = Reflector(f"keys of the Secret {secret}", self._watch, self.take, seconds)
        self._threads = [
            threading.Thread(target=run, name=name, daemon=True)
            for name, run in (("follow", self._reflector.run), ("keys", self._work))
        ]

    def _look(self) -> None:
        """Find out what is on the disk, and so in use; while that cannot be told, what was known of it stays."""
        try:
            made = self._kept.read()
        except SharedKeysError as error:
            self._fault = f"what is in use cannot be told, and nothing is changed until it can: {error}"
            return
        ids = ids_of(made, "")
        since = self._kept.since(ids, self._since)
        with self._lock:
            self._made, self._ids, self._since, self._fault = made, ids, since, ""

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._reflector.stop()

    def _connected(self) -> Follows:
        with self._connecting:
            if self._follows is None:
                self._follows = self._connect()
            return self._follows

    def _watch(self, seconds: float) -> Iterator[SeenSecret | None]:
        return self._connected().watch(seconds)

    def take(self, seen: SeenSecret | None) -> None:
        """What the API server said; None: that nothing changed."""
        with self._lock:
            self._sign_ms = self._clock.now_ms()
            self._seen = self._seen if seen is None else seen

    def step(self) -> None:
        """Write what there is and is believed; then say what is in use."""
        with self._lock:
            seen, sign_ms = self._seen, self._sign_ms
        if self._monotonic() >= self._again:
            if self._fault:
                self._look()
            why = self._fault
            if not why and seen is not None and sign_ms is not None:
                why = self._taken(seen, sign_ms)
            self._trouble.note(why or None)
            if why:
                self._again = self._monotonic() + AGAIN_SECONDS
        if self._ids.of and not self._fault:
            self._tell()
        self._stepped = self._monotonic()

    def _taken(self, seen: SeenSecret, sign_ms: int) -> str:
        """Why what the Secret has is not on the disk; "": it is."""
        where = f"the Secret {self._secret}"
        try:
            made = contents(seen.data, self._wanted, where)
            ids = ids_of(made, where)
            same = self._record is not None and self._record.uid == seen.uid
            retired = frozenset(self._record.retired if self._record is not None else ())
            why = unbelieved(self._ids, ids, seen.retired if same else frozenset()) or come_back(ids, retired)
            if why:
                return f"{where}: {why}: {BACK}; or {self._kept.anew}"
            if made != self._made or not self._kept.stands(made):
                self._written(made, ids)
            if sign_ms != self._true_ms:
                self._true_ms, self._true_at = sign_ms, self._monotonic()
            retired = retired | seen.retired
            record = Record(uid=seen.uid, seen_ms=sign_ms, since=self._since, retired=tuple(sorted(retired)))
            due = self._monotonic() - self._kept_at >= KEPT_SECONDS
            if due or self._record is None or record != self._record.model_copy(update={"seen_ms": sign_ms}):
                self._kept.keep(record)
                self._record, self._kept_at = record, self._monotonic()
        except (SharedKeysError, StoreError) as error:
            return str(error)
        return ""

    def _written(self, made: Mapping[str, bytes], ids: Ids) -> None:
        try:
            self._kept.write(made)
        except StoreError:
            self._look()  # some of it may be there, and whoever reads it seals by it
            raise
        changed = ids != self._ids
        since = self._kept.since(ids, self._since)  # after the write: until then the one before sealed
        with self._lock:
            self._made, self._ids, self._since = made, ids, since
        if changed:
            words = "; ".join(f"{name} {', '.join(keys)}" for name, keys in ids.of.items())
            log.info("shared keys of the Secret %s are in use: %s", self._secret, words)

    def _tell(self) -> None:
        """What is on the disk, and therefore in use with the next look of those who read it."""
        now = self._monotonic()
        quiet = now - self._told_at
        due = quiet >= AGAIN_SECONDS if self._untold else quiet >= TELL_SECONDS or self._told != self._ids
        if not due:
            return
        self._told_at, self._told = now, self._ids
        ids, seconds = self._ids.of, self._kept.seconds
        said = InUse(
            at=rfc3339(self._clock.now_ms(), "seconds"),
            sealing=ids.get(SEALING, ()),
            sealing_for_seconds=seconds(self._since.get(SEALING)),
            nonces=ids.get(NONCES, ()),
            nonces_for_seconds=seconds(self._since.get(NONCES)),
            boot_ids=ids.get(BOOT_IDS, ("",))[0],
        )
        try:
            self._connected().tell(self._replica, said)
        except CannotTellError as error:
            self._untold = f"which keys are in use here cannot be said, so that none can be rotated: {error}"
        else:
            self._untold = None

    def status(self) -> KeysStatus:
        """For `/readyz` and metrics."""
        problem = self._fault or self._reflector.problem or self._trouble.problem or self._untold or self._late()
        now_ms, message = self._clock.now_ms(), problem or f"as the Secret {self._secret} has them"
        if self._fault and not self._ids.of:
            message = self._fault
        elif problem and not self._ids.of:
            message = f"{problem}; there are no keys yet, and none are made up: nothing boots here"
        elif problem and self._true_ms is not None:
            message = f"{problem}; in use is what there was at {rfc3339(self._true_ms, 'seconds')}"
        age = None
        if self._true_ms is not None:
            age = max((now_ms - self._true_ms) / 1000, self._monotonic() - self._true_at)
        return KeysStatus(
            at_ms=now_ms,
            ok=not problem,
            message=message,
            remedy=REMEDY,
            age_seconds=age,
            unavailable=self._reflector.unavailable,
        )

    def _late(self) -> str | None:
        seconds = self._monotonic() - self._stepped
        words = f"keys have not been written down for {seconds:.0f} s: the disk hangs, or who is told which are in use"
        return words if seconds > LATE_SECONDS else None

    def _work(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.step()
            except Exception:  # a thread that ends would end unheard
                self._trouble.note(DEFECT)
                log.exception("shared keys could not be kept")
                self._stopping.wait(AGAIN_SECONDS)
