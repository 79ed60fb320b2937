"""How a failure is answered; which is answered how is in `netboot.failures`."""

import logging
from typing import Literal, NamedTuple


class Answer(NamedTuple):
    """How a failure is answered.

    `says`: the exception's own words may go to the client, for they were written for it; otherwise `message` does.
    `retry_after`: seconds, where trying again is right. `script`: which script a machine gets.
    """

    status: int
    code: str
    level: int
    message: str
    remedy: str = ""
    says: bool = False
    retry_after: int | None = None
    script: Literal["refused", "unavailable"] = "unavailable"

    def text(self, error: BaseException) -> str:
        """What the client may read: printable, one line, at most 500 characters."""
        message = str(error) if self.says and str(error) else self.message
        return "".join(c if " " <= c <= "~" else " " for c in message)[:500]


UNEXPECTED = Answer(500, "internal", logging.ERROR, "internal error", "see the log of the service")
