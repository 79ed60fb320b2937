"""The bench's part `page`: its p95, what it says, and what it judges by."""

from bench.page import Pages, Visit, described, p95, verdicts


def test_p95_is_what_95_of_100_do_not_exceed() -> None:
    assert p95([float(number) for number in range(100, 0, -1)]) == 95
    assert p95([3.0]) == 3
    assert p95([float(number) for number in range(20)]) == 18


def test_what_is_said_and_judged() -> None:
    visits = {50: [Visit(8, 20), Visit(9, 21)], 5_000: [Visit(30, 41), Visit(31, 84)]}
    found = Pages({"/page/": visits}, {50: [Visit(1, 2)], 5_000: [Visit(3, 4)]})
    assert described(found) == (
        "the page in Chromium, p95 in ms: answered, loaded\n"
        "    /page/, 50 machines: 9, 21\n"
        "    /page/, 5000 machines: 31, 84\n"
        "    /page/ after a change, 50 machines: 1, 2\n"
        "    /page/ after a change, 5000 machines: 3, 4"
    )
    assert [str(each) for each in verdicts(found)] == [
        "p95 of /page/ with 5000 machines ÷ with 50: 4 (target ≤ 3) MISS",
        "p95 of /page/ after a change with 5000 machines ÷ with 50: 2 (target ≤ 3) pass",
    ]
