"""Who leads, by a Lease: never two at once, whatever is late, frozen or set, and another soon when one is gone."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.lifecycle.election import LONGEST_SECONDS, Election, Lease, Times

TIMES = Times(lease_ms=15_000, renew_ms=10_000, retry_ms=2_000)
FREE = Lease("u1", "1", released="somebody_before")
EMPTY = Lease("u1", "1")


def one(name: str = "a_1", times: Times = TIMES) -> Election:
    return Election(name, times)


def acquired(election: Election, lease: Lease, now_ms: int) -> Lease:
    """It sees the Lease, writes it, and leads."""
    election.saw(lease, now_ms)
    wanted = election.wanted(now_ms)
    assert wanted is not None
    written = wanted._replace(version=f"{lease.version}+")
    election.wrote(written, now_ms, now_ms)
    assert election.leads(now_ms)
    return written


def test_what_its_holder_let_go_of_is_taken_at_once() -> None:
    election = one()
    election.saw(FREE._replace(transitions=6), 1_000)
    assert election.wanted(1_000) == Lease("u1", "1", holder="a_1", transitions=7, seconds=15)
    assert not election.leads(1_000)  # not by what it wants: by what is written


def test_an_empty_lease_that_nobody_let_go_of_is_waited_for() -> None:
    """It was wiped, or made anew: somebody may lead by what was there before."""
    election = one()
    election.saw(EMPTY, 1_000)
    assert election.wanted(15_999) is None
    assert election.wanted(16_000) is not None


def test_a_leader_acts_from_before_it_sent_until_it_ought_to_have_renewed() -> None:
    election = one()
    election.saw(FREE, 0)
    wanted = election.wanted(0)
    assert wanted is not None
    election.wrote(wanted, sent_ms=100, now_ms=8_000)
    assert election.leads(10_099)
    assert not election.leads(10_100)
    assert election.until_ms() == 10_100


def test_who_follows_waits_from_when_it_saw_the_last_write() -> None:
    holder, follower = one(), one("b_2")
    lease = acquired(holder, FREE, 0)
    follower.saw(lease, 5_000)
    follower.saw(lease, 12_000)  # the same once more
    assert follower.wanted(19_999) is None
    wanted = follower.wanted(20_000)
    assert wanted is not None
    assert (wanted.holder, wanted.transitions, wanted.version) == ("b_2", 2, lease.version)


def test_any_write_counts_as_a_renewal() -> None:
    holder, follower = one(), one("b_2")
    lease = acquired(holder, FREE, 0)
    follower.saw(lease, 0)
    follower.saw(lease._replace(version="somebody annotated it"), 14_000)
    assert follower.wanted(28_999) is None


def test_a_longer_lease_of_another_configuration_is_waited_for_up_to_a_bound() -> None:
    follower = one("b_2")
    follower.saw(Lease("u1", "1", holder="a_1", transitions=1, seconds=60), 0)
    assert follower.wanted(59_999) is None
    assert follower.wanted(60_000) is not None
    follower.saw(Lease("u1", "2", holder="a_1", transitions=1, seconds=10**9), 0)
    assert follower.wanted(1000 * LONGEST_SECONDS - 1) is None
    assert follower.wanted(1000 * LONGEST_SECONDS) is not None


def test_a_leader_that_was_late_goes_on_with_its_epoch_where_nobody_took_over() -> None:
    election = one()
    lease = acquired(election, FREE, 0)
    assert not election.leads(60_000)
    election.saw(lease, 60_000)
    wanted = election.wanted(60_000)
    assert wanted is not None
    assert wanted.transitions == lease.transitions == 1


def test_a_leader_that_sees_another_one_leads_no_more() -> None:
    election = one()
    lease = acquired(election, FREE, 0)
    election.saw(lease._replace(holder="b_2", version="9"), 1)
    assert not election.leads(1)
    assert election.wanted(1) is None


def test_who_cannot_tell_does_not_lead() -> None:
    election = one()
    acquired(election, FREE, 0)
    election.lost()
    assert not election.leads(1)
    assert election.wanted(1) is None
    assert election.until_ms() is None


def test_who_lets_go_leads_no_more_before_it_says_so() -> None:
    election = one()
    lease = acquired(election, FREE, 0)
    assert election.release() == lease._replace(holder="", released="a_1")
    assert not election.leads(1)
    assert one().release() is None
    follower = one("b_2")
    follower.saw(lease, 0)
    assert follower.release() is None


def test_an_epoch_is_not_used_twice_where_somebody_wiped_the_lease() -> None:
    follower = one("b_2")
    follower.saw(Lease("u1", "1", holder="a_1", transitions=41, seconds=15), 0)
    follower.saw(Lease("u1", "2"), 1_000)
    wanted = follower.wanted(16_000)
    assert wanted is not None
    assert wanted.transitions == 42
    follower.saw(Lease("u2", "7"), 17_000)  # another object: another count
    wanted = follower.wanted(32_000)
    assert wanted is not None
    assert wanted.transitions == 1


def test_for_how_long_nobody_has_led() -> None:
    follower = one("b_2")
    assert follower.vacant_ms(1_000) == 0
    assert follower.vacant_ms(3_000) == 2_000  # there is no telling
    follower.saw(Lease("u1", "1", holder="a_1", transitions=1, seconds=15), 4_000)
    assert follower.vacant_ms(18_999) == 0
    assert follower.vacant_ms(19_000) == 0
    assert follower.vacant_ms(20_000) == 1_000


def unable(name: str = "a_1", since_ms: int = 0) -> Election:
    election = one(name)
    election.can(since_ms, able=False)
    return election


def test_a_leader_that_cannot_do_the_work_lets_go_after_a_duration() -> None:
    leader = one()
    lease = acquired(leader, FREE, 1_000)
    leader.can(2_000, able=False)
    leader.can(9_000, able=False)
    for at_ms, over in ((16_999, False), (17_000, True)):
        leader.wrote(lease, at_ms, at_ms)  # it goes on renewing
        assert leader.hands_over(at_ms) is over
    leader.can(17_500, able=True)
    leader.can(18_000, able=False)
    leader.wrote(lease, 32_999, 32_999)
    assert not leader.hands_over(32_999), "it counts from anew"


def test_who_cannot_do_the_work_leads_only_where_nobody_else_does() -> None:
    last = unable("b_2")
    last.saw(FREE, 20_000)
    assert one().wanted(20_000) is None, "it has seen nothing"
    assert last.wanted(49_999) is None
    assert last.wanted(50_000) is not None
    lease = FREE._replace(holder="b_2", transitions=1)
    last.wrote(lease, 50_000, 50_000)
    for at_ms, over in ((349_999, False), (350_000, True)):
        last.wrote(lease, at_ms, at_ms)
        assert last.hands_over(at_ms) is over
    assert last.release() == lease._replace(holder="", released="b_2")
    last.wrote(lease, 352_000, 352_000)  # that was not taken, so it renews what is its own
    assert last.hands_over(352_000)


def test_it_waits_as_others_do_for_as_long_as_it_may_be_able_again() -> None:
    soon = unable("b_2", 10_000)
    soon.saw(FREE, 24_999)
    assert soon.wanted(24_999) is not None
    assert soon.wanted(25_000) is None
    soon.can(26_000, able=True)
    assert soon.wanted(26_000) is not None


def test_an_api_server_that_does_not_answer_makes_nobody_unable() -> None:
    leader = one()
    lease = acquired(leader, FREE, 1_000)
    leader.can(1_000, able=False)
    leader.unseen(15_000)
    leader.wrote(lease, 29_999, 29_999)
    assert not leader.hands_over(29_999)
    leader.wrote(lease, 30_000, 30_000)
    assert leader.hands_over(30_000)
    able = one()
    able.unseen(1_000)
    able.saw(FREE, 40_000)
    assert able.wanted(40_000) is not None


# -- any interleaving --------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """One object with compare-and-swap."""

    lease: Lease = EMPTY
    versions: int = 1

    def write(self, lease: Lease) -> Lease | None:
        if (lease.uid, lease.version) != (self.lease.uid, self.lease.version):
            return None
        self.versions += 1
        self.lease = lease._replace(version=str(self.versions))
        return self.lease

    def wipe(self, *, anew: bool) -> None:
        self.versions += 1
        uid = f"u{self.versions}" if anew else self.lease.uid
        self.lease = Lease(uid, str(self.versions))


@dataclass
class Replica:
    """`rate`: of its clock; `offset`: of it; `sent`: a write that is under way, with when it was sent."""

    election: Election
    rate: float
    offset: int
    sent: tuple[Lease, int] | None = None
    answer: tuple[Lease | None, int] | None = None

    def now(self, true_ms: int) -> int:
        return self.offset + round(true_ms * self.rate)

    def leads(self, true_ms: int) -> bool:
        return self.election.leads(self.now(true_ms))


ACTS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(
        ["look", "send", "arrive", "answer", "lose", "refused", "release", "wipe", "anew", "touch", "able", "unable"]
    ),
    st.sampled_from([0, 1, 100, 1_000, 2_500, 9_000, 12_000, 15_500, 40_000]),
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(ACTS, max_size=120),
    st.tuples(*[st.floats(0.9, 1.1)] * 3),
    st.tuples(*[st.integers(0, 60_000)] * 3),
)
def test_never_two_lead_at_once(
    acts: list[tuple[int, str, int]], rates: tuple[float, ...], offsets: tuple[int, ...]
) -> None:
    """Time goes on between any two steps (a freeze, a slow network); requests arrive late, or their answers never; the
    Lease is wiped, and made anew. Clocks stand anywhere, and their rates differ by a fifth."""
    server, true_ms = Server(), 0
    replicas = [
        Replica(Election(f"r{index}", TIMES), rate, offset)
        for index, (rate, offset) in enumerate(zip(rates, offsets, strict=True))
    ]
    for index, act, passes in acts:
        replica = replicas[index]
        _do(replica, server, act, true_ms)
        assert sum(each.leads(true_ms) for each in replicas) <= 1
        true_ms += passes
        assert sum(each.leads(true_ms) for each in replicas) <= 1


def _do(replica: Replica, server: Server, act: str, true_ms: int) -> None:
    election, now = replica.election, replica.now(true_ms)
    idle = replica.sent is None and replica.answer is None
    if act == "look":
        election.saw(server.lease, now)
    elif act == "send" and idle and (wanted := election.wanted(now)) is not None:
        replica.sent = (wanted, now)
    elif act == "release" and idle and (wanted := election.release()) is not None:
        server.write(wanted)
    elif act == "refused":
        election.lost()
    elif act in ("able", "unable"):
        election.can(now, able=act == "able")
    elif act in ("wipe", "anew"):
        server.wipe(anew=act == "anew")
    elif act == "touch":
        server.write(server.lease)
    else:
        _travel(replica, server, act, now)


def _travel(replica: Replica, server: Server, act: str, now: int) -> None:
    """What is under way arrives, or not."""
    if act == "arrive" and replica.sent is not None:
        lease, sent = replica.sent
        replica.sent, replica.answer = None, (server.write(lease), sent)
    elif act == "answer" and replica.answer is not None:
        written, sent = replica.answer
        replica.answer = None
        if written is None:
            replica.election.lost()
        else:
            replica.election.wrote(written, sent, now)
    elif act == "lose":
        replica.answer = None


@given(
    st.integers(0, 30_000),
    st.tuples(*[st.floats(0.9, 1.1)] * 2),
    st.tuples(*[st.integers(0, 60_000)] * 2),
    st.lists(st.integers(0, 400), min_size=40, max_size=40),
)
def test_another_leads_within_two_durations(
    dies_ms: int, rates: tuple[float, ...], offsets: tuple[int, ...], jitter: list[int]
) -> None:
    """Each looks every two seconds and somewhat more; the first one dies at some moment."""
    server = Server(FREE)
    first, second = (Replica(Election(f"r{n}", TIMES), rates[n], offsets[n]) for n in (0, 1))
    true_ms = 0
    for pause in jitter:
        for replica in (first, second):
            if replica is first and true_ms > dies_ms:
                continue
            for act in ("look", "send", "arrive", "answer"):
                _do(replica, server, act, true_ms)
        if second.leads(true_ms):
            break
        true_ms += TIMES.retry_ms + pause
    assert second.leads(true_ms)
    assert true_ms <= dies_ms + 2 * TIMES.lease_ms
