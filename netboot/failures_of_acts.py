"""Rows of `netboot.failures`: an act that is asked for with conditions, or again."""

import logging

from netboot.answer import Answer
from netboot.lifecycle import errors as lifecycle

_INFO = logging.INFO

ACTS: dict[type[BaseException], Answer] = {
    lifecycle.PreconditionFailedError: Answer(
        412,
        "precondition-failed",
        _INFO,
        "it was changed meanwhile; nothing was done",
        "look at it again, and send the ETag of that answer if it is still meant",
        says=True,
    ),
}
