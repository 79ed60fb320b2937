"""How the part `origins` of the bench judges; the measuring itself is `make bench`."""

from bench.origins import Origins, described, verdicts


def test_throughput_is_judged_by_links_and_a_bad_origin_by_the_honest_rest() -> None:
    found = Origins(
        mib=256,
        together=[18.0, 17.0, 30.0],
        rest=[24.0, 20.0],
        lies=[24.0, 30.0],
        dies=[18.0, 20.0],
        alone=[2.25, 2.5],
        stream=[3.0, 2.5],
    )
    judged = [(one.what, round(one.value, 3), one.reached) for one in verdicts(found)]
    assert judged == [
        ("origins together ÷ sum of their links", 0.852, True),
        ("one origin lies half-way ÷ the honest rest", 1.25, True),
        ("one origin dies half-way ÷ the honest rest", 0.875, True),
        ("one fast origin ÷ one stream, then hashed", 0.875, True),
    ]
    assert described(found) == (
        "256 MiB from origins of 20, 40, 80 Mbit/s: "
        "together 18.0 s, the honest rest 22.0 s, one lies 27.0 s, one dies 19.0 s; "
        "from one of 1000 Mbit/s: 2.38 s, as one stream that is hashed when it is whole 2.75 s"
    )
