"""Who is let in, and who makes room: `netboot.admission` without a socket."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from netboot.admission import TURNOVER_SECONDS, Gate, Seat


class Crowd:
    """Connections by name, and which of them were ended to make room."""

    def __init__(self, gate: Gate) -> None:
        self.gate, self.ended = gate, list[str]()
        self.seats: dict[str, Seat] = {}

    def enter(self, name: str, address: str) -> str:
        seat = self.seats[name] = Seat(address, self._end(name))
        return self.gate.enter(seat)

    def served(self, name: str, address: str) -> str:
        state = self.enter(name, address)
        self.gate.serve(self.seats[name])
        return state

    def _end(self, name: str) -> Callable[[], None]:
        return lambda: self.ended.append(name)


def test_who_waited_longest_of_an_address_makes_room_for_its_next() -> None:
    crowd = Crowd(Gate(most=100, most_each=2, most_network=100))
    assert [crowd.enter(name, "a") for name in ("a1", "a2")] + [crowd.enter("b1", "b")] == ["admitted"] * 3
    assert (crowd.enter("a3", "a"), crowd.ended) == ("admitted", ["a1"])
    crowd.gate.serve(crowd.seats["a2"])
    crowd.gate.wait(crowd.seats["a2"])  # it has been answered, and waits anew
    assert (crowd.enter("a4", "a"), crowd.ended) == ("admitted", ["a1", "a3"])
    assert crowd.gate.open == 3


def test_of_a_network_of_ipv6_one_of_the_same_64_makes_room_once_it_has_had_its_time() -> None:
    now = [0.0]
    crowd = Crowd(Gate(most=100, most_each=100, most_network=2, monotonic=lambda: now[0]))
    addresses = {"other": "2001:db8:0:2::1", "x1": "2001:db8:0:1::1", "x2": "2001:db8:0:1:ffff::2"}
    assert [crowd.enter(name, address) for name, address in addresses.items()] == ["admitted"] * 3
    now[0] = TURNOVER_SECONDS - 0.1
    assert (crowd.enter("x3", "2001:db8:0:1::3"), crowd.ended) == ("excess", [])
    crowd.gate.leave(crowd.seats["x3"])
    now[0] = TURNOVER_SECONDS
    assert (crowd.enter("x4", "2001:db8:0:1::4"), crowd.ended) == ("admitted", ["x1"])
    assert [crowd.enter(f"v4-{n}", f"192.0.2.{n}") for n in range(9)] == ["admitted"] * 9
    assert crowd.ended == ["x1"], "addresses of IPv4 are no network together"


def test_places_of_a_full_network_change_hands_one_after_the_other_where_each_costs_a_handshake() -> None:
    now = [0.0]
    gate = Gate(most=100, most_each=2, most_network=4, monotonic=lambda: now[0], turnover_spacing=0.25)
    crowd, address, other = Crowd(gate), "2001:db8:0:1::", "2001:db8:0:2::"
    assert [crowd.enter(f"{n}", f"{address}{n}") for n in range(4)] == ["admitted"] * 4
    assert [crowd.enter(f"other{n}", f"{other}{n}") for n in range(4)] == ["admitted"] * 4
    now[0] = 10.0
    assert [crowd.enter(f"a{n}", f"{address}a{n}") for n in range(3)] == ["admitted", "excess", "excess"]
    assert crowd.enter("other4", f"{other}4") == "admitted", "each network by itself"
    now[0] = 10.25
    assert [crowd.enter(f"b{n}", f"{address}b{n}") for n in range(2)] == ["admitted", "excess"]
    assert crowd.ended == ["0", "other0", "1"]
    assert [crowd.enter(f"v4-{n}", "192.0.2.1") for n in range(4)] == ["admitted", "admitted", "admitted", "excess"]
    assert crowd.ended[3:] == ["v4-0"], "an address that is full as well"


def test_who_is_told_to_come_back_takes_nobody_s_place() -> None:
    now = [0.0]
    crowd = Crowd(Gate(most=6, most_each=6, most_network=3, monotonic=lambda: now[0]))
    address = "2001:db8:0:1::"
    states = [crowd.enter(f"{n}", f"{address}{n}") for n in range(9)]
    assert states == ["admitted"] * 3 + ["excess"] * 3 + ["cut"] * 3
    assert crowd.gate.open == 9
    assert [crowd.enter(f"other{n}", f"192.0.2.{n}") for n in range(3)] == ["admitted"] * 3
    now[0] = TURNOVER_SECONDS
    assert crowd.enter("late", f"{address}a") == "admitted"
    assert crowd.ended == ["0"]


def test_in_all_who_waited_longest_makes_room() -> None:
    crowd = Crowd(Gate(most=2, most_each=2, most_network=2))
    assert [crowd.enter(name, name) for name in "abc"] == ["admitted"] * 3
    assert (crowd.ended, crowd.gate.open, crowd.gate.refused) == (["a"], 2, 1)


def test_who_is_served_makes_room_for_nobody() -> None:
    crowd = Crowd(Gate(most=3, most_each=2, most_network=2))
    states = [crowd.served(f"{peer}{at}", peer) for at, peer in enumerate(("a", "a", "b", "a", "c", "d", "e"))]
    assert states == ["admitted", "admitted", "admitted", "excess", "excess", "excess", "cut"]
    assert crowd.ended == []
    for seat in crowd.seats.values():
        crowd.gate.leave(seat)
        crowd.gate.leave(seat)
    assert (crowd.gate.open, crowd.gate.refused, len(crowd.gate)) == (0, 4, 0)
    assert crowd.enter("a", "a") == "admitted"


_ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:1::1", "unknown"]
_STEPS = st.lists(st.tuples(st.sampled_from(["enter", "serve", "wait", "leave"]), st.integers(0, 30)), max_size=150)


@given(_STEPS)
def test_limits_hold_whatever_happens_and_nothing_is_remembered_of_who_left(steps: list[tuple[str, int]]) -> None:
    crowd = Crowd(Gate(most=6, most_each=2, most_network=3))
    inside: dict[str, str] = {}
    for at, (what, number) in enumerate(steps):
        if what == "enter":
            address = _ADDRESSES[number % len(_ADDRESSES)]
            if crowd.enter(str(at), address) == "admitted":
                inside[str(at)] = address
        elif crowd.seats:
            name = list(crowd.seats)[number % len(crowd.seats)]
            getattr(crowd.gate, what)(crowd.seats[name])
            if what == "leave":
                inside.pop(name, None)
        inside = {name: address for name, address in inside.items() if name not in crowd.ended}
        by_address = [list(inside.values()).count(address) for address in _ADDRESSES]
        assert len(inside) <= 6
        assert max(by_address) <= 2
        assert sum(by_address[2:5]) <= 3
        assert len(crowd.gate) <= crowd.gate.open
    for seat in crowd.seats.values():
        crowd.gate.leave(seat)
    assert (crowd.gate.open, len(crowd.gate)) == (0, 0)
