"""Parsers of what strangers send: what ever broke one, and what nearly did, is read again; and some more by chance."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS, Target, seeds


def read(target: Target, data: bytes) -> None:
    try:
        target.read(data)
    except target.refuses as error:
        # Words of our own go into an answer and a log: they are on one line. (pydantic's are shortened there.)
        assert isinstance(error, ValueError) or (str(error) != "" and str(error).isprintable())


def test_every_target_has_a_corpus_and_nothing_else_is_there() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == sorted(TARGETS)
    assert [name for name in TARGETS if not seeds(name)] == []


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_read_or_refused(name: str) -> None:
    for data in seeds(name):
        read(TARGETS[name], data)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_lies_near_the_corpus_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """A part of a good input replaced by other bytes, by bytes of another one, or by nothing."""
    corpus = seeds(name)
    good = data.draw(st.sampled_from(corpus))
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(good)), st.integers(0, len(good)))))
    other = data.draw(st.one_of(st.binary(max_size=16), st.sampled_from(corpus)))
    read(TARGETS[name], good[:first] + other + good[last:])
