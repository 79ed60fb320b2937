"""A fleet to look at: machines in racks, of which some are late, ill, held or on their way, with boots, a rollout and
strangers. What is found of them is made up; it lies where the service has it."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from images.values.types import Sha256
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.events import AnyRecord, DiscoveryRecord, EventRecord, HealthRecord, ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Member, MemberState, Rollout
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Trouble
from netboot.machines.strategy import Strategy
from netboot.status.controllers import RolloutStatus
from tests.records import KEY, console, found_crash
from tests.sites import add_image
from tests.sockets.api import NOW, ROLLOUTS, Api

T, R = ConditionType, Reason
MINUTE, HOUR = 60_000, 3_600_000
PER_RACK = 32
MIDDLE = 16
"""Machines of each rack below its switches, which are in the four units over them."""
ENDS = (0.6, 0.62, 0.65)
"""Parts of the fleet that are through the rollout, out of service, assigned the image; the rest waits."""
OLD: Sha256 = "a" * 64
LATE, HUNG, SICK, LOST = "gpu-0017", "gpu-0042", "gpu-0030", "gpu-0008"
"""Stuck in its initrd; in a loop of boots; with a failed check; silent."""
WELL = {
    T.BOOTED: R.BOOTED,
    T.JOINED: R.JOINED,
    T.HEALTHY: R.CHECKS_PASSED,
    T.IN_SERVICE: R.IN_SERVICE,
    T.UP_TO_DATE: R.UP_TO_DATE,
    T.REACHABLE: R.NODE_READY,
}
CONSOLE = """\
[    2.104] mlx5_core 0000:41:00.0: firmware version: 28.39.1002
[    2.911] mlx5_core 0000:41:00.0 enp65s0f0: Link down
[   21.400] netboot: bringing up enp65s0f0
[ 2040.100] netboot: no link on enp65s0f0 after 60 s: trying again
"""
HOSTILE = '<img src=x onerror="document.title=1">\'"{{7*7}}</script><script>document.title=2</script>'
"""What a machine may say of itself."""


def documents(kernel: str) -> dict[str, bytes]:
    """Of an image: its packages, of which the kernel has that version, and a bill of materials."""
    packages = [["linux-image-amd64", kernel, "amd64"], ["kubelet", "1.34.4", "amd64"], ["tzdata", "2024b", "all"]]
    return {"packages": json.dumps(packages).encode(), "sbom": b'{"bomFormat": "CycloneDX", "specVersion": "1.6"}'}


class World:
    """The management API with `count` machines; `words`: what machines say, wherever they say something."""

    def __init__(self, folder: Path, count: int = 50, words: str = "", places: int = 8) -> None:
        self.names = [f"gpu-{number:04}" for number in range(1, count + 1)]
        self.words = words
        self.api = Api(folder, inventory=self._inventory(), publish=False, places=places, writable=True)
        self.old = add_image(self.api.config, name="compute-2026.10", documents=documents("6.1.119-1"))
        self.new = add_image(self.api.config, name="compute-2026.11", documents=documents("6.1.124-1"))
        self.api.store.set_channel("stable", self.new)
        self.api.publisher.step()
        self.boots: dict[str, str] = {}
        self._records()
        self.keep(self._judged(number, name) for number, name in enumerate(self.names, 1))
        self._rollout()

    def keep(self, judged: Iterable[Judged]) -> None:
        """This was found of machines."""
        self.api.kept.keep(list(judged), (), {})

    def found(
        self, name: str, step: str = "Ready", minutes: int = 4000, said: str = "", heard: str = "", **other: Reason
    ) -> Judged:
        """A machine that is well but for what is said by the names of conditions. `heard`: its own words in that."""
        reasons = WELL | {T[kind]: reason for kind, reason in other.items()}
        at = NOW - minutes * MINUTE
        words = {kind: said if T(kind).name in other else "" for kind in reasons}
        conditions = tuple(
            MachineCondition.of(kind, reason, words[kind], at, heard if words[kind] else "")
            for kind, reason in reasons.items()
        )
        boot = self.boots.get(name) or mint(KEY, name, self.new, at, 1)
        image = OLD if reasons[T.UP_TO_DATE] is R.OTHER_IMAGE else self.new
        trouble = {R.STUCK: Trouble.STUCK, R.FAILED: Trouble.FAILED, R.LOST: Trouble.LOST}.get(reasons[T.BOOTED])
        told = {"trouble": trouble} if trouble is not None else {}
        return Judged(machine=name, conditions=conditions, timers={}, step=step, boot=boot, image=image, **told)

    def _inventory(self) -> str:
        lines = ["machines:"]
        for number, name in enumerate(self.names):
            mac = f"52:54:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
            rack, kind = f"r{number // PER_RACK + 1:02}", "hgx-h100" if number % 3 else "hgx-h200"
            lines.append(
                f'- {{name: {name}, match: {{macs: ["{mac}"]}}, profile: compute, rack: {rack}, '
                f"position: {unit(number)}, class: {kind}}}"
            )
        lines += ["profiles:", "- {name: compute, channel: stable, pcrs: none}"]
        lines += ["channels:", "- {name: stable, description: what production boots}", "racks:"]
        lines += [f"- {{name: r{rack + 1:02}}}" for rack in range(-(-len(self.names) // PER_RACK))]
        lines += ["classes:", "- {name: hgx-h100}", "- {name: hgx-h200}"]
        return "\n".join(lines) + "\n"

    def _judged(self, number: int, name: str) -> Judged:
        boot = self.boots.get(name, "")
        stuck = (
            f"boot {boot} reached InitrdStarted at 2023-11-14T21:35:20Z and nothing beyond in 15m (default): the root "
        )
        stuck += "image does not come: no origin answers, or each of them tells it to wait; last heard: Failed at "
        heard = self.words or "no link on enp65s0f0 after 60 s"
        stuck += f"2023-11-14T22:11:03Z, {heard!r}"
        if name == LATE:
            return self.found(name, "InitrdStarted", 24, stuck, heard, **_down(R.STUCK))
        if name == HUNG:
            loop = (
                "6 boots by their own word, in 20m, and none was Ready: more than 5 (default) are a loop; the furthest "
            )
            loop += "phase of all is Switched; last heard: Switched at 2023-11-14T22:10:41Z"
            loop += f", {self.words!r}" if self.words else ""
            return self.found(name, "Switched", 21, loop, self.words, **_down(R.BOOT_LOOP))
        if name == SICK:
            failed = "gpu: GPU 3 fell off the bus (Xid 79); ecc: 41 uncorrectable errors" + self.words
            return self.found(name, "InService", 7, failed, HEALTHY=R.CHECKS_FAILED)
        if name == LOST:
            lost = f"boot {boot}: its Node has not been Ready for 20m (default)"
            return self.found(name, "Ready", 52, lost, BOOTED=R.LOST, JOINED=R.LOST, IN_SERVICE=R.NODE_NOT_SEEN)
        if number % 211 == 9:
            held = "alice: a fan is to be replaced"
            return self.found(name, "InService", 130, held, IN_SERVICE=R.HELD)
        if number % 53 == 12:
            on_its_way = "the next phase may take 15m (default)"
            down = _down(R.BOOTING) | {"UP_TO_DATE": R.UP_TO_DATE, "REACHABLE": R.HEARD_FROM}
            return self.found(name, "InitrdStarted", number % 9, on_its_way, **down)
        if number % 997 == 500:
            failed = (
                f"boot {mint(KEY, name, self.new, NOW, 1)} says that it failed after Booted, at 2023-11-14T22:03:20Z: "
            )
            heard = "no time server answers"
            return self.found(name, "Booted", 12, f"{failed}{heard}", heard, **_down(R.FAILED))
        if number % 400 == 31:
            return self.found(name, "", 9000, "no boot of it is known", **_down(R.NEVER_BOOTED))
        return self.found(
            name, "InService", 4000 - number % 3000, UP_TO_DATE=R.OTHER_IMAGE if number % 3 else R.UP_TO_DATE
        )

    def _records(self) -> None:
        records: list[AnyRecord] = []
        up = "KernelFetched InitrdFetched InitrdStarted ImageFetched ImageVerified Switched Booted Joining Attested"
        steps = [Phase(step) for step in (*up.split(), "TokenIssued", "CSRApproved", "NodeRegistered", "Ready")]
        for name in (LATE, HUNG, SICK, LOST, self.names[0]):
            if name not in self.names:
                continue
            records += self._boot(name, 1, NOW - 9 * 24 * HOUR, steps)
            number = {LATE: 3, HUNG: 6}.get(name, 13)
            records += self._boot(name, 2, NOW - 39 * MINUTE, steps[:number])
        late = self.boots[LATE] if LATE in self.boots else self.boots[self.names[0]]
        failed = EventRecord(
            at_ms=NOW - 4 * MINUTE,
            boot=late,
            machine=LATE if LATE in self.boots else self.names[0],
            phase=Phase.FAILED,
            uptime_ms=35 * MINUTE,
            detail=(self.words or "no link on enp65s0f0 after 60 s")[:200],
            peer="192.0.2.7",
        )
        text = "[ 2113.402] mlx5_core 0000:41:00.0: health poll failed\n[ 2113.911] Kernel panic - not syncing: hung\n"
        crash = found_crash(failed.machine, 2, text=text + self.words + "\n")
        crash = crash.model_copy(update={"boot": late, "at_ms": NOW - 38 * MINUTE, "crashed_ms": NOW - 41 * MINUTE})
        said = console(failed.machine, 2, 34 * MINUTE, f"{CONSOLE}{self.words}\n")
        said = said.model_copy(update={"boot": late, "at_ms": NOW - 5 * MINUTE})
        records += [failed, crash, said, self._health(self.boots[self.names[0]], self.names[0])]
        records += [self._stranger(number) for number in range(4)]
        self.api.states.take(Batch("boot-0.db", 1, len(records), records, range(1, len(records) + 1)))

    def _boot(self, name: str, number: int, begun: int, steps: list[Phase]) -> list[AnyRecord]:
        boot = self.boots[name] = mint(KEY, name, self.new, begun, number)
        common = {"boot": boot, "machine": name, "peer": "192.0.2.7"}
        script = ScriptRecord(
            at_ms=begun, cluster="default", image=self.new, profile="compute", channel="stable", **common
        )
        made: list[AnyRecord] = [script]
        times = (2, 9, 41, 118, 131, 133, 171, 173, 176, 177, 214, 222, 263)
        for step, seconds in zip(steps, times, strict=False):
            served = step in (Phase.KERNEL_FETCHED, Phase.INITRD_FETCHED)
            said = "by tpm, PCR policy: none" if step is Phase.ATTESTED else ""
            uptime = None if served or step in steps[8:] else (seconds - 20) * 1000
            made.append(EventRecord(at_ms=begun + seconds * 1000, phase=step, uptime_ms=uptime, detail=said, **common))
        return made

    def _health(self, boot: str, name: str) -> HealthRecord:
        found = [("gpu", "pass", "8 GPUs, 8 wanted"), ("links", "warn", self.words[:150] or "a cable flaps")]
        checks = [{"name": n, "status": s, "severity": "major", "summary": w, "ms": 3} for n, s, w in found]
        report = {"schema": 1, "machine": name, "taken_ms": NOW - MINUTE, "checks": checks}
        said = {"at_ms": NOW - MINUTE, "boot": boot, "machine": name, "peer": "192.0.2.7", "report": report}
        return HealthRecord.model_validate(said)

    def _stranger(self, number: int) -> DiscoveryRecord:
        return DiscoveryRecord(
            at_ms=NOW - number * 7 * MINUTE,
            outcome="unknown",
            mac=f"b8:ce:f6:0a:11:{number:02x}",
            uuid=f"4c4c4544-0042-3510-8050-b{number}c04f4d3532",
            serial=self.words[:60] if self.words and number == 1 else f"S4Z{number}B52",
            architecture="amd64",
            reason=f"no machine of the inventory has MAC b8:ce:f6:0a:11:{number:02x}",
            peer=f"192.0.2.{100 + number}",
        )

    def _rollout(self) -> None:
        rollout = Rollout(
            number=0,
            channel="stable",
            image=self.new,
            image_name="compute-2026.11",
            base=OLD,
            strategy=Strategy(),
            on_next_boot=False,
            unproven=False,
            rolling=True,
            operator="alice",
            reason=self.words[:200] or "kernel 6.1.158",
            started_ms=NOW - 3 * HOUR,
        )
        states = [MemberState.DONE, MemberState.OUT, MemberState.ASSIGNED, MemberState.WAITING]
        whole = len(self.names)
        members = {
            name: Member(
                machine=name,
                rack=f"r{number // PER_RACK + 1:02}",
                position=unit(number),
                previous=OLD,
                state=MemberState.FAILED if number == 5 else states[sum(number > whole * part for part in ENDS)],
                canary=number < 2,
                tries=int(number == 5),
                why="it did not come back within 40m" if number == 5 else "",
            )
            for number, name in enumerate(self.names)
        }
        self.api.rollouts.start(rollout, members, Note(NOW - 3 * HOUR, "alice", "start", "kernel 6.1.158"))
        counts = dict(Counter(str(each.state) for each in members.values()))
        said = RolloutStatus(number=1, channel="stable", state="running", undoing=False, machines=counts)
        self.api.say(rollouts=ROLLOUTS.model_copy(update={"rollouts": (said,)}))


def unit(number: int) -> int:
    """Of a machine, by its number from 0 on: the first of a rack is at its top."""
    lower = PER_RACK - number % PER_RACK
    return lower + 4 * (lower > MIDDLE)


def _down(reason: Reason) -> dict[str, Reason]:
    at_node = {"HEALTHY": R.NO_REPORT, "IN_SERVICE": R.NOT_JOINED}
    if reason is R.NEVER_BOOTED:
        return {"BOOTED": reason, "JOINED": reason, "UP_TO_DATE": reason, "REACHABLE": reason} | at_node
    return {"BOOTED": reason, "JOINED": reason, "REACHABLE": R.SILENT} | at_node
