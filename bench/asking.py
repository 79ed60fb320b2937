"""A known machine that asks again and again, from an address of its own, each time over a new connection."""

import contextlib
import socket
import time
from collections.abc import Sequence
from typing import NamedTuple

from bench.serving import HOST

EVERY = 0.25
"""Seconds between two questions: asked more often than is written down of one boot, it would be answered late for its
own sake."""


class Question(NamedTuple):
    """What the known machine asks; `right`: what an answer has to hold."""

    port: int
    path: str
    right: bytes


def asked(questions: Sequence[Question], seconds: float) -> tuple[list[list[float]], list[int]]:
    """Milliseconds of each answer, on new connections, one after the other, by question; how many were not right."""
    began = time.monotonic()
    took, wrong = [list[float]() for _ in questions], [0] * len(questions)
    for number in range(max(20, round(seconds / EVERY))):
        due = began + number * EVERY
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() > began + seconds:
            break
        for place, question in enumerate(questions):
            began_this, answer = time.monotonic(), _answer(question)
            took[place].append((time.monotonic() - began_this) * 1000)
            wrong[place] += question.right not in answer
    return took, wrong


def _answer(question: Question) -> bytes:
    """What came back until the end; a connection that fails, or says nothing for ten seconds, has no more."""
    answer = b""
    with contextlib.suppress(OSError), socket.socket() as connection:
        connection.bind(("127.0.9.9", 0))
        connection.settimeout(10)
        connection.connect((HOST, question.port))
        connection.sendall(f"GET {question.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        while got := connection.recv(65536):
            answer += got
    return answer
