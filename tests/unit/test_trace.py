"""The fold from records to traces: no order, no duplicate and no late arrival changes what is known."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from netboot.lifecycle.boot_facts import Certificate, Console, Crash
from netboot.lifecycle.bootid import minted_ms
from netboot.lifecycle.events import (
    BootEvent,
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    EventRecord,
    ScriptRecord,
    SharedRecord,
    TraceRecord,
)
from netboot.lifecycle.phases import REPORTED_PHASES, SERVED_PHASES, Phase, Source
from netboot.lifecycle.reached import MOST_FAILURES, ORDER, Reached
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.sentences import failed, last_heard, lost, said_last, stuck, without
from netboot.lifecycle.state import is_claim
from netboot.lifecycle.trace import Trace, apply
from netboot.machines.deadlines import Deadline

BOOT = "018bcfe5-6800-8fff-bfff-c8dd6b13e782"
MINTED = minted_ms(BOOT)
SCRIPT = ScriptRecord(
    at_ms=1000,
    boot=BOOT,
    machine="gpu-001",
    cluster="default",
    image="a" * 64,
    profile="default",
    channel="stable",
    peer="192.0.2.7",
)


def event(at_ms: int, phase: Phase, detail: str = "", uptime_ms: int | None = None) -> EventRecord:
    return EventRecord(
        at_ms=at_ms, boot=BOOT, machine="gpu-001", phase=phase, detail=detail, uptime_ms=uptime_ms, peer="192.0.2.7"
    )


def crash(at_ms: int, crashed_ms: int = 0, text: str = "panic\n") -> CrashRecord:
    return CrashRecord(at_ms=at_ms, boot=BOOT, machine="gpu-001", crashed_ms=crashed_ms, text=text, peer="192.0.2.7")


def console(at_ms: int, uptime_ms: int = 700, text: str = "it waits\n") -> ConsoleRecord:
    fields = {"boot": BOOT, "machine": "gpu-001", "text": text, "peer": "192.0.2.7"}
    return ConsoleRecord(at_ms=at_ms, uptime_ms=uptime_ms, **fields)


def sent(*records: TraceRecord) -> tuple[int, str, int]:
    """Of the console that is kept of them its uptime and digest, and when the first came."""
    kept = fold(*records).console
    assert kept is not None
    return kept.uptime_ms, kept.sha256, kept.first_ms


def believed(one: Console | ConsoleRecord) -> int:
    """Its uptime, as far as it can be."""
    return min(one.uptime_ms, one.at_ms - MINTED + 60_000)


def certificate(at_ms: int, sha256: str = "c" * 64, until_ms: int = 90_000) -> CertificateRecord:
    return CertificateRecord(at_ms=at_ms, boot=BOOT, machine="gpu-001", sha256=sha256, until_ms=until_ms)


def fold(*records: TraceRecord) -> Trace:
    trace = None
    for record in records:
        trace = apply(trace, record)
    assert trace is not None
    return trace


WHOLE = (
    SCRIPT,
    event(2000, Phase.KERNEL_FETCHED),
    event(3000, Phase.INITRD_FETCHED),
    event(9000, Phase.INITRD_STARTED, uptime_ms=2100),
    event(12000, Phase.IMAGE_FETCHED, "http://192.0.2.1:8080", uptime_ms=5000),
    event(12100, Phase.IMAGE_VERIFIED, uptime_ms=5100),
    event(13000, Phase.SWITCHED, uptime_ms=6000),
    event(20000, Phase.BOOTED, uptime_ms=13000),
)


def test_how_a_boot_attested_is_never_the_words_of_one_time_and_the_digest_of_another() -> None:
    first = event(15_000, Phase.ATTESTED, "without a TPM")
    later = [event(at, Phase.ATTESTED, "by its TPM") for at in (99_000, 98_000)]
    quoted = [each.model_copy(update={"sha256": digit * 64}) for each, digit in zip(later, "f1", strict=True)]
    found = set()
    for order in permutations([first, *quoted]):
        trace = None
        for record in order:
            trace = apply(trace, record)
        assert trace is not None
        found.add(trace.phase(Phase.ATTESTED))
    [attested] = found
    assert attested is not None
    assert (attested.at_ms, attested.detail, attested.sha256) == (15_000, "without a TPM", "")


def test_a_whole_boot() -> None:
    trace = fold(*WHOLE)
    assert [(one.phase, one.at_ms, one.source) for one in trace.reached] == [
        (Phase.SCRIPT_SERVED, 1000, Source.SERVED),
        (Phase.KERNEL_FETCHED, 2000, Source.SERVED),
        (Phase.INITRD_FETCHED, 3000, Source.SERVED),
        (Phase.INITRD_STARTED, 9000, Source.REPORTED),
        (Phase.IMAGE_FETCHED, 12000, Source.REPORTED),
        (Phase.IMAGE_VERIFIED, 12100, Source.REPORTED),
        (Phase.SWITCHED, 13000, Source.REPORTED),
        (Phase.BOOTED, 20000, Source.REPORTED),
    ]
    assert (trace.state, trace.reason) == (Phase.BOOTED, "")
    assert (trace.last_served, trace.last_reported) == (Phase.INITRD_FETCHED, Phase.BOOTED)
    assert (trace.started_ms, trace.last_ms) == (1000, 20000)
    assert trace.script is not None
    assert (trace.script.image, trace.script.channel) == ("a" * 64, "stable")
    assert trace.phase(Phase.INITRD_STARTED) == Reached(
        at_ms=9000, phase=Phase.INITRD_STARTED, source=Source.REPORTED, uptime_ms=2100, peer="192.0.2.7"
    )


def test_events_before_their_script_are_kept() -> None:
    early = fold(event(9000, Phase.INITRD_STARTED))
    assert (early.script, early.state, early.last_served) == (None, Phase.INITRD_STARTED, None)
    assert fold(event(9000, Phase.INITRD_STARTED), SCRIPT) == fold(SCRIPT, event(9000, Phase.INITRD_STARTED))


def test_a_phase_out_of_order_is_recorded_in_its_place() -> None:
    trace = fold(SCRIPT, event(5000, Phase.SWITCHED), event(6000, Phase.IMAGE_VERIFIED))
    assert [one.phase for one in trace.reached] == [Phase.SCRIPT_SERVED, Phase.IMAGE_VERIFIED, Phase.SWITCHED]
    assert trace.state is Phase.SWITCHED


def test_of_each_phase_the_first_time_stays() -> None:
    trace = fold(event(6000, Phase.IMAGE_FETCHED, "second"), event(5000, Phase.IMAGE_FETCHED, "first"))
    assert [(one.at_ms, one.detail) for one in trace.reached] == [(5000, "first")]


def test_a_failure_is_the_state_until_something_later_is_reached() -> None:
    failed = (SCRIPT, event(9000, Phase.INITRD_STARTED), event(9500, Phase.FAILED, "chunk 3: bad digest"))
    assert (fold(*failed).state, fold(*failed).reason) == (Phase.FAILED, "chunk 3: bad digest")
    recovered = fold(*failed, event(9900, Phase.IMAGE_FETCHED))
    assert (recovered.state, recovered.reason) == (Phase.IMAGE_FETCHED, "")
    assert [failure.detail for failure in recovered.failures] == ["chunk 3: bad digest"]


def test_a_failure_that_is_said_again_is_one_failure_the_earliest() -> None:
    def failed(at_ms: int, detail: str, uptime_ms: int | None) -> EventRecord:
        return event(at_ms, Phase.FAILED, detail).model_copy(update={"uptime_ms": uptime_ms})

    first, again = failed(9500, "no link", 4000), failed(9900, "no link", 4000)
    other = failed(9950, "no link", 4400)
    for failures in ([first, again, other], [again, other, first]):
        assert [(one.at_ms, one.uptime_ms) for one in fold(SCRIPT, *failures).failures] == [(9500, 4000), (9950, 4400)]
    silent = fold(SCRIPT, failed(9500, "no link", None), failed(9900, "no link", None))
    assert len(silent.failures) == 2, "without an uptime nothing tells a new failure from one said again"


@pytest.mark.parametrize("words", ["no link on enp65s0f0", "it's; last heard: Ready at 2023-11-14T22:13:21Z, 'well'"])
def test_a_sentence_is_parted_before_a_machine_s_own_words(words: str) -> None:
    """Which may look like sentences of ours."""
    trace, deadline = fold(*WHOLE[:4], event(10_000, Phase.FAILED, words)), Deadline(900, "")
    assert said_last(trace) == words
    for sentence in (stuck(trace, Phase.INITRD_STARTED, deadline), lost(trace, deadline, joins=True)):
        for since in ("", f"; since then boot {BOOT} says that it failed: x, {words!r}: {words}"):
            rest = sentence.removesuffix(f", {words!r}") + since
            assert without(sentence + since, words, Reason.STUCK) == rest
        assert sentence.removesuffix(f", {words!r}").endswith("; last heard: Failed at 1970-01-01T00:00:10Z")
    at = f"boot {BOOT} says that it failed after InitrdStarted, at 1970-01-01T00:00:10Z"
    since = f"; since then boot {BOOT} says: {words}, {words!r}"
    assert without(failed(trace, Phase.INITRD_STARTED) + since, words, Reason.FAILED) == at + since


def test_where_a_machine_said_nothing_a_sentence_has_one_part() -> None:
    silent, mute = fold(*WHOLE[:4]), fold(*WHOLE[:4], event(10_000, Phase.FAILED))
    sentences = [stuck(each, Phase.INITRD_STARTED, Deadline(900, "")) for each in (silent, mute)]
    for sentence in (*sentences, failed(mute, Phase.INITRD_STARTED), "alice: a fan is to be replaced"):
        assert without(sentence, "", Reason.FAILED) == sentence
    assert [said_last(silent), said_last(mute)] == ["", ""]


def test_what_we_write_down_of_a_boot_is_no_word_of_its_machine() -> None:
    """The detail of a fact that was observed."""
    trace = fold(*WHOLE, event(20_000, Phase.READY, "Node gpu-001"))
    assert last_heard(trace) == "Ready at 1970-01-01T00:00:20Z, 'Node gpu-001'"
    assert said_last(trace) == ""


def test_a_trace_that_begins_with_a_failure() -> None:
    trace = fold(event(9500, Phase.FAILED, "no link"))
    assert (trace.state, trace.reason, trace.started_ms) == (Phase.FAILED, "no link", 9500)


def test_a_machine_that_fails_for_days_stays_small() -> None:
    trace = fold(SCRIPT, *(event(2000 + i, Phase.FAILED, f"try {i}") for i in range(1000)))
    assert len(trace.failures) == MOST_FAILURES
    assert (trace.failures[0].detail, trace.reason) == ("try 0", "try 999")


def test_a_crash_that_is_sent_again_is_one_crash_the_earliest() -> None:
    first, again, other = crash(9500, 700), crash(9900, 700), crash(9600, 700, "another\n")
    for crashes in ([first, again, other], [again, other, first]):
        assert fold(SCRIPT, *crashes).crashes == (
            Crash(at_ms=9600, crashed_ms=700, begins="another\n", sha256=other.sha256, peer="192.0.2.7"),
            Crash(at_ms=9500, crashed_ms=700, begins="panic\n", sha256=first.sha256, peer="192.0.2.7"),
        )
    known = fold(SCRIPT, first)
    assert apply(known, again) is known


def test_of_many_crashes_the_first_and_the_last_are_kept() -> None:
    """An oops is why the panic came that ended it."""
    trace = fold(SCRIPT, *(crash(2000 + i, i) for i in range(100)))
    assert [one.crashed_ms for one in trace.crashes] == [0, 1, 98, 99]
    of_one_second = [crash(2000, 0, f"[    7.{i:06}] {'-' * 40} {i % 7}\n") for i in range(100)]
    assert [one.begins[5:14] for one in fold(SCRIPT, *of_one_second).crashes] == [f"7.{i:06}]" for i in (0, 1, 98, 99)]


def test_a_crash_is_no_step_of_the_boot_that_found_it() -> None:
    up = fold(*WHOLE)
    found = fold(*WHOLE, crash(9100))
    assert (found.reached, found.failures, found.state) == (up.reached, (), Phase.BOOTED)
    early = fold(crash(9100))
    assert (early.state, early.started_ms, early.last_ms) == (Phase.SCRIPT_SERVED, 9100, 9100)


def test_of_a_console_the_newest_by_its_own_clock_is_kept_and_the_same_once() -> None:
    newest, again = console(MINTED + 9500, 800), console(MINTED + 9900, 800)
    late = console(MINTED + 9950, 300, "it begins\n")
    when = {"first_ms": newest.at_ms, "at_ms": newest.at_ms, "uptime_ms": 800}
    kept = Console(**when, sha256=newest.sha256, peer="192.0.2.7")
    for told in permutations((newest, again, late)):
        assert fold(SCRIPT, *told).console == kept
    known = fold(SCRIPT, newest)
    assert apply(known, again) is apply(known, late) is known
    one, other = console(9500, 800, "a\n"), console(9500, 800, "b\n")
    assert fold(one, other) == fold(other, one)


def test_an_uptime_that_no_kernel_can_have_keeps_no_later_console_out() -> None:
    before, after = console(MINTED + 20_000, 9_000), console(MINTED + 120_000, 109_000, "it goes on\n")
    made_up = console(MINTED + 20_000, 10**12, "x\n")
    for told in permutations((before, made_up, after)):
        assert sent(*told) == (109_000, after.sha256, before.at_ms)
    assert sent(before, made_up) == (10**12, made_up.sha256, before.at_ms), "what was said is shown as it was"
    behind = console(MINTED + 30_000 - 50_000, 20_000, "by a host whose clock is behind\n")
    for told in permutations((before, behind)):
        assert sent(*told) == (20_000, behind.sha256, behind.at_ms)


def test_a_console_is_no_step_of_its_boot_and_no_moment_of_it() -> None:
    """Nothing that is judged by how long a boot is silent may wait for it: it comes again and again."""
    up = fold(*WHOLE)
    found = fold(*WHOLE, console(95_000))
    assert (found.reached, found.failures, found.state) == (up.reached, (), Phase.BOOTED)
    assert (found.started_ms, found.last_ms) == (1000, 20_000)
    assert last_heard(found) == last_heard(up)
    for told in permutations((console(9100), console(69_100, 60_700), console(39_100, 30_700))):
        early = fold(*told)
        assert (early.state, early.started_ms, early.last_ms) == (Phase.SCRIPT_SERVED, 9100, 9100)
        assert last_heard(early) == "the first lines of its console at 1970-01-01T00:00:09Z"
        assert not is_claim(early)


def test_a_certificate_is_no_step_of_its_boot_and_what_is_told_again_is_one() -> None:
    up = fold(*WHOLE)
    first, again, renewed = certificate(21_000), certificate(99_000), certificate(95_000, "d" * 64, 200_000)
    for told in ([first, again, renewed], [renewed, again, first]):
        found = fold(*WHOLE, *told)
        assert (found.reached, found.state, found.started_ms, found.last_ms) == (up.reached, up.state, 1000, 20_000)
        assert found.certificates == (
            Certificate(at_ms=21_000, sha256="c" * 64, until_ms=90_000),
            Certificate(at_ms=95_000, sha256="d" * 64, until_ms=200_000),
        )
    early = fold(first)
    assert (early.state, early.started_ms, is_claim(early)) == (Phase.SCRIPT_SERVED, 21_000, True)


def test_of_a_boot_that_lasts_the_certificates_that_end_last_are_kept() -> None:
    many = [certificate(at, f"{at:064x}", at + 1) for at in range(100)]
    assert [one.at_ms for one in fold(*reversed(many)).certificates] == list(range(84, 100))


def test_a_record_of_another_boot_or_machine_is_refused() -> None:
    for other in ({"boot": BOOT.replace("0", "1")}, {"machine": "gpu-002"}):
        with pytest.raises(ValueError, match="is not one of boot"):
            apply(fold(SCRIPT), SCRIPT.model_copy(update=other))


@pytest.mark.parametrize("phase", sorted(SERVED_PHASES))
def test_a_machine_cannot_report_what_only_the_service_knows(phase: Phase) -> None:
    with pytest.raises(ValueError, match="a phase that only the service can know"):
        BootEvent(mac="52:54:00:12:34:56", phase=phase)


@pytest.mark.parametrize("phase", sorted(REPORTED_PHASES))
def test_a_machine_reports_what_it_did(phase: Phase) -> None:
    assert BootEvent(mac="52-54-00-12-34-56", phase=phase).mac == "52:54:00:12:34:56"


CONSOLE_TIMES = st.integers(0, 50) | st.integers(MINTED - 60_000, MINTED - 59_950)
"""By our clock; so early that no uptime, or only a low one, can be believed."""
records = st.one_of(
    st.builds(event, st.integers(0, 50), st.sampled_from(sorted(Phase)), st.sampled_from(["", "a", "b"])),
    st.builds(lambda at: SCRIPT.model_copy(update={"at_ms": at}), st.integers(0, 50)),
    st.builds(crash, st.integers(0, 50), st.integers(0, 3), st.sampled_from(["", "a\n", "b\n"])),
    st.builds(console, CONSOLE_TIMES, st.integers(0, 60), st.sampled_from(["a\n", "b\n"])),
    st.builds(certificate, st.integers(0, 50), st.sampled_from(["c" * 64, "d" * 64]), st.integers(50, 52)),
)


@given(st.lists(records, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_order_and_replays_change_nothing(some: list[TraceRecord], random: Random) -> None:
    again = [*some, *some[: len(some) // 2]]
    random.shuffle(again)
    assert fold(*some) == fold(*again)


class Projection(RuleBasedStateMachine):
    """Journals are projected in any order, with replays; the model is the plain set of all records seen."""

    @initialize()
    def begin(self) -> None:
        self.trace: Trace | None = None
        self.seen: list[TraceRecord] = []

    @rule(record=records)
    def project(self, record: TraceRecord) -> None:
        self.trace = apply(self.trace, record)
        self.seen.append(record)

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        if self.seen:
            before, again = self.trace, data.draw(st.sampled_from(self.seen))
            self.trace = apply(before, again)
            assert self.trace == before

    @invariant()
    def nothing_is_lost_or_invented(self) -> None:
        if self.trace is None:
            return
        times: dict[Phase, int] = {}
        for record in self.seen:
            if isinstance(record, CrashRecord | ConsoleRecord | CertificateRecord | SharedRecord):
                continue
            phase = Phase.SCRIPT_SERVED if isinstance(record, ScriptRecord) else record.phase
            times[phase] = min(times.get(phase, record.at_ms), record.at_ms)
        assert bool(self.trace.failures) == (times.pop(Phase.FAILED, None) is not None)
        assert {one.phase: one.at_ms for one in self.trace.reached} == times
        consoles = [one for one in self.seen if isinstance(one, ConsoleRecord)]
        console = self.trace.console
        assert (console is not None) == bool(consoles)
        if console is not None:
            assert believed(console) == max(believed(one) for one in consoles)
            assert console.first_ms == min(one.at_ms for one in consoles)
        found = {one for one in self.seen if isinstance(one, CrashRecord)}
        crashes = {(one.crashed_ms, one.text[:16], one.sha256) for one in found}
        kept = [one.which for one in self.trace.crashes]
        signed = {(one.until_ms, one.sha256) for one in self.seen if isinstance(one, CertificateRecord)}
        assert [(one.until_ms, one.sha256) for one in self.trace.certificates] == sorted(signed)
        assert kept == (sorted(crashes) if len(crashes) <= 4 else [*sorted(crashes)[:2], *sorted(crashes)[-2:]])

    @invariant()
    def served_and_reported_are_never_mixed(self) -> None:
        for one in self.trace.reached if self.trace else ():
            assert (one.source is Source.SERVED) == (one.phase in SERVED_PHASES)

    @invariant()
    def phases_stand_in_their_order_and_the_state_is_one_of_them(self) -> None:
        if self.trace is None:
            return
        places = [ORDER.index(one.phase) for one in self.trace.reached]
        assert places == sorted(set(places))
        assert self.trace.state in {one.phase for one in self.trace.reached} | {Phase.FAILED, Phase.SCRIPT_SERVED}
        assert (self.trace.state is Phase.FAILED) or not self.trace.reason


TestProjection = Projection.TestCase
TestProjection.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
