"""Origins that are dark, for no SYN is answered: each costs one deadline, and is remembered for the boot."""

import pytest

from tests.tools.images.boot_stage import BUSYBOX
from tests.tools.images.origin import Origin, dark
from tests.tools.images.test_stage_fetch import BLOB, FETCH, ROOT, Machine, machine, part

__all__ = ["machine"]

pytestmark = pytest.mark.tools

SHORT = "CONNECT_SECONDS=1\npause() { echo PAUSED; }\n"
"""And a line for each wait before another try."""


def dark_ones(machine: Machine, count: int) -> list[Origin]:
    return [machine.stack.enter_context(dark()) for _ in range(count)]


def left(origin: Origin) -> str:
    return f"netboot: left {origin.url}: no answer in 1 seconds\n"


def remembered(machine: Machine) -> list[str]:
    return (machine.stage.run_folder / "image/dark").read_text().split()


def test_three_lists_of_dark_origins_cost_a_deadline_each_until_the_service_is_asked(machine: Machine) -> None:
    away, service = dark_ones(machine, 3), machine.origin()
    done = machine.fetch(*away, service, script=SHORT + FETCH)
    assert machine.fetched == ROOT
    assert [done.stdout.count(left(origin)) for origin in away] == [1, 1, 1], done.stdout
    assert "PAUSED" not in done.stdout
    assert service.ranges_of(BLOB) == [part(0)]
    assert remembered(machine) == [origin.url for origin in away]


def test_those_that_are_preferred_alike_are_asked_at_once(machine: Machine) -> None:
    """The one that answers has brought all before the other's deadline is over: nobody waits for that."""
    (away,), (good, service) = dark_ones(machine, 1), (machine.origin(), machine.origin())
    done = machine.fetch(away, good, service, preferred=2, script=f"{SHORT}CONNECT_SECONDS=60\n{FETCH}", stall=60)
    assert machine.fetched == ROOT
    assert "no answer in" not in done.stdout
    assert service.asked == []


def test_what_was_dark_is_asked_last_in_the_next_try_of_the_boot(machine: Machine) -> None:
    one, two = dark_ones(machine, 2)
    lying = machine.origin(status=404)
    again = 'ORIGINS="$ORIGINS x"\nbegin_fetch; cat "$FETCH/order"\n'
    done = machine.fetch(one, lying, two, script=SHORT + FETCH + again)
    assert done.stdout.split()[-4:] == [lying.url, "x", one.url, two.url]


def test_who_is_alone_is_tried_three_times(machine: Machine) -> None:
    (away,) = dark_ones(machine, 1)
    done = machine.fetch(away, script=SHORT + FETCH)
    assert done.stdout.count("PAUSED") == 2
    assert done.stdout.endswith(
        f"REASON cannot fetch the root image, it stays at 0 of 4 chunks: {away.url}: no answer in 1 seconds\n"
    )


@pytest.mark.parametrize(("host", "seconds"), [("127.0.0.1", 4), ("localhost", 10)])
def test_a_connection_has_the_deadline_and_what_comes_over_it_has_not(
    machine: Machine, host: str, seconds: int
) -> None:
    """Four seconds: three SYNs. An origin that takes longer for its first byte is no dark one. Of a name busybox's nc
    counts the look-up, too, for which the second of two name servers is asked after five."""
    good, wrapper = machine.origin(rate=2_000_000), machine.stage.folder / "busybox"
    wrapper.write_text(f'#!{BUSYBOX} sh\necho "$*" >>{machine.stage.folder}/asked\nexec {BUSYBOX} "$@"\n')
    wrapper.chmod(0o755)
    good.url = good.url.replace("127.0.0.1", host)
    machine.fetch(good, script=f"BUSYBOX={wrapper}\n{FETCH}")
    assert machine.fetched == ROOT
    asked = [line for line in (machine.stage.folder / "asked").read_text().splitlines() if line.startswith("nc ")]
    port = good.url.rpartition(":")[2]
    assert [line.partition(" -e ")[0] for line in asked] == [f"nc -w {seconds} {host} {port}"]


@pytest.mark.parametrize(
    ("words", "spare", "error", "failed"),
    [
        ("nc: timed out", True, "no answer in 4 seconds", "3"),
        ("nc: can't connect to remote host (192.0.2.1): No route to host", True, "", "3"),
        ("nc: can't connect to remote host (192.0.2.1): Network is unreachable", True, "", "3"),
        ("nc: can't connect to remote host (192.0.2.1): Host is unreachable", True, "", "3"),
        ("nc: timed out", False, "no answer in 4 seconds", "1"),
        ("nc: can't connect to remote host (192.0.2.1): Connection refused", True, "", "1"),
        ("nc: bad address 'cache'", True, "", "1"),
    ],
)
def test_what_is_dark(machine: Machine, words: str, spare: bool, error: str, failed: str) -> None:
    script = (
        f"spare() {{ {'true' if spare else 'false'}; }}\nreceived() {{ echo 0; }}\n"
        'FETCH=$RUN/image slot=1 origin=http://a failed=0 before=0 within=4 outcome=""\n'
        ': >"$FETCH/claimed"; echo "$WORDS" >"$FETCH/error.1"; echo http://a >"$FETCH/order"\n'
        'judge_outcome; echo "$failed $error"; cat "$FETCH/order"'
    )
    done = machine.stage.sh(script.replace('"$WORDS"', f'"{words}"'))
    lines = ["http://a", "http://a"] if failed == "3" else ["http://a"]
    assert done.stdout.splitlines() == [f"{failed} {error or words}", *lines]


def test_who_refuses_is_not_dark(machine: Machine) -> None:
    """A cache that is being started again is asked three times, which takes no time."""
    with dark() as gone:
        pass
    good = machine.origin()
    done = machine.fetch(gone, good, script=SHORT + FETCH)
    assert machine.fetched == ROOT
    words = "nc: can't connect to remote host (127.0.0.1): Connection refused"
    assert f"netboot: left {gone.url}: {words}\n" in done.stdout
    assert done.stdout.count("PAUSED") == 2
    assert not (machine.stage.run_folder / "image/dark").exists()
