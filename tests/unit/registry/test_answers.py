"""What an answer's headers say of its length: a number as HTTP writes one, or nothing."""

import io

import pytest
import requests

from images.registry.answers import stream
from images.registry.errors import DamagedError


def answer(length: str) -> requests.Response:
    made = requests.Response()
    made.status_code, made.headers["Content-Length"], made.raw = 200, length, io.BytesIO(b"abc")
    return made


@pytest.mark.parametrize("length", ["", "²", "+5", " 5", "-5", "5,5", "0x5", "5.0", "9" * 20, "9" * 5_000])
def test_a_length_that_is_no_number_says_nothing(length: str) -> None:
    assert stream(answer(length), 0, 5, "there", "root").start == 0


@pytest.mark.parametrize("length", ["6", "0", "9" * 19])
def test_another_length_than_was_signed(length: str) -> None:
    with pytest.raises(DamagedError) as caught:
        stream(answer(length), 0, 5, "there", "root")
    assert str(caught.value) == f"root of there is damaged: it has {length} bytes there, 5 were signed"
