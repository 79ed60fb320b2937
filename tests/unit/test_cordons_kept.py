"""No order of cordons, boots, losses and looks takes off a cordon that nobody lifted: join, controllers and collector
together, with a cluster in memory."""

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from netboot.controllers.cordons import AndCordons
from netboot.join.credential import Presented
from netboot.join.errors import ClusterUnavailableError, CordonedError
from netboot.join.issue import issue
from netboot.join.ports import Credential, NodeView
from netboot.lifecycle.cordons import Cordon, is_kept
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Mark
from netboot.status.controllers import RolloutsStatus
from tests.joining import PEER, Stage, boot_id, declared
from tests.records import START
from tests.states import MemoryStates

NAME, HELD = "gpu-001", "netboot.dev/held=Held:NoSchedule"


class Cordons(RuleBasedStateMachine):
    """`cordoned`: somebody wants the machine to take no work, and has not taken that back."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage((declared(NAME),))
        self.states, self.taken, self.boot = MemoryStates(), 0, 1
        self.seen: dict[str, Cordon] = {}
        self.heard, self.cordoned, self.joined = False, False, False
        self.loop = AndCordons(self, self.stage.intents, self.states, lambda: self.seen, lambda _: self.heard, self)
        self.stage.cluster.make_node(NAME)

    # -- the loop around which controllers make holds, and their clock

    def step(self) -> None:
        """Nothing more is to be done."""

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=START, rollouts=())

    def now_ms(self) -> int:
        return self.stage.now_ms

    # -- what happens

    def node(self) -> NodeView | None:
        return self.stage.cluster._nodes.get(NAME)

    @precondition(lambda self: self.node() is not None)
    @rule()
    def cordon(self) -> None:
        node = self.node()
        assert node is not None
        self.stage.cluster.put_node(node._replace(cordoned=True))
        self.cordoned = True

    @precondition(lambda self: self.node() is not None and self.node().cordoned)
    @rule()
    def uncordon(self) -> None:
        node = self.node()
        assert node is not None
        self.stage.cluster.put_node(node._replace(cordoned=False))
        self.cordoned = is_kept(self.stage.intents.of(NAME, self.now_ms()))

    @rule()
    def unhold(self) -> None:
        self.stage.intents.order(NAME, TakeOff(Mark.HELD, "it is well"), "bob", self.now_ms())
        node = self.node()
        self.cordoned = node is not None and node.cordoned

    @rule()
    def hold(self) -> None:
        self.stage.intents.order(NAME, PutOn(Mark.HELD, "for a minute", self.now_ms() + 60_000), "bob", self.now_ms())

    @rule()
    def pass_minutes(self) -> None:
        self.stage.now_ms += 120_000

    @rule()
    def reboot(self) -> None:
        self.boot, self.joined = self.boot + 1, False

    @precondition(lambda self: not self.joined)
    @rule()
    def join(self) -> None:
        """It attests; where it is told to come back, it does some time."""
        issuer = self.stage.exchange().issuer
        asked = Credential(
            machine=NAME, cluster="default", node=NAME, assurance="tpm", boot=boot_id(NAME, self.boot),
            holder=f"{self.boot:064x}", holder_spki="", reset_count=self.boot, restart_count=0, at_ms=self.now_ms(),
        )  # fmt: skip
        try:
            answer = issue(issuer, self.stage.machines[0], lambda _existing: Presented(asked), 300, PEER)
        except (CordonedError, ClusterUnavailableError):
            return
        self.joined = True
        self.stage.cluster.make_node(NAME)
        assert HELD in answer.taints or not self.cordoned, "from its registration on"

    @rule()
    def lose_an_answer(self) -> None:
        self.stage.cluster.fail_next = 1

    @rule()
    def project(self) -> None:
        """All that was journalled is in the state."""
        records, self.heard = self.stage.records[self.taken :], True
        self.taken += len(records)
        self.states.take(Batch("join-0.db", 1, self.taken, tuple(records)))

    @rule()
    def look(self) -> None:
        """The collector says what is cordoned; controllers look some time later."""
        node = self.node()
        self.seen = {NAME: Cordon(node=NAME)} if node is not None and node.cordoned else {}

    @rule()
    def controllers(self) -> None:
        self.project()
        self.loop.step()

    @invariant()
    def nothing_takes_it_off(self) -> None:
        node = self.node()
        kept = is_kept(self.stage.intents.of(NAME, self.now_ms()))
        assert not self.cordoned or kept or (node is not None and node.cordoned)


TestCordons = Cordons.TestCase
TestCordons.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
