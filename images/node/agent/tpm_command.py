"""One command to a TPM 2.0 and its response, marshalled by hand: it is less than any library.

Sources: TCG "TPM 2.0 Library", part 1, section 18 (a command's form), and part 2, section 6.6 (response codes).
"""

import os
import struct
from collections.abc import Callable, Sequence

from tokens.wire import Reader

from .errors import TpmError

Transport = Callable[[bytes], bytes]
"""Sends one command and returns its response."""
AGAIN = (0x922, 0x908, 0x90A)
"""RETRY, YIELDED, TESTING: the same command may succeed in a moment."""
_MEANINGS = {
    0x81: "does not know this kind of key",
    0x84: "refuses a value",
    0x85: "has its endorsement hierarchy disabled: enable it in the firmware's set-up",
    0x8B: "has no such object",
    0x8E: "has a password on its endorsement hierarchy: clear it",
    0x9D: "refuses the policy of its endorsement key",
    0x9F: "cannot open the challenge: it was made for another TPM, or altered",
    0xA2: "has a password on its endorsement hierarchy: clear it",
    0x100: "was not started by the firmware",
    0x101: "is in failure mode: power the machine off and on; if it stays so, the TPM is broken",
    0x120: "is disabled in the firmware's set-up",
    0x902: "has no room for another object: something else fills it",
    0x903: "has no room for another session: something else fills it",
    0x921: "is locked out after wrong passwords: wait, or clear the lock-out",
    0x922: "is busy",
}


def meaning(code: int) -> str:
    """What a response code means. Format-one codes (bit 7) name a parameter, handle or session in their other bits."""
    base = code & 0xBF if code & 0x80 else code & 0xFFF
    return f"the TPM {_MEANINGS.get(base, 'refuses a command')} (response {code:#x})"


_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0)


def command(
    transport: Transport,
    pause: Callable[[float], object],
    code: int,
    handles: Sequence[int],
    sessions: Sequence[int],
    parameters: bytes,
) -> Reader:
    """The response after its header. `sessions`: one for each handle that needs authorisation.

    Raises:
        TpmError: the TPM refuses, or is busy for ten seconds; with its response code.
    """
    body = b"".join(struct.pack(">I", handle) for handle in handles)
    if sessions:
        area = b"".join(struct.pack(">IHBH", session, 0, 1, 0) for session in sessions)
        body += struct.pack(">I", len(area)) + area
    body += parameters
    message = struct.pack(">HII", 0x8002 if sessions else 0x8001, 10 + len(body), code) + body
    for seconds in (*_PAUSES, None):
        reader = Reader(transport(message))
        _, _, result = reader.number(2), reader.number(4), reader.number(4)
        if result == 0:
            return reader
        if result & 0xFFF not in AGAIN or seconds is None:
            break
        pause(seconds)
    raise TpmError(meaning(result), result & 0xFFF)


def transact(file: int, message: bytes) -> bytes:
    """The response to a command written to an open TPM device, or to a simulator's socket."""
    os.write(file, message)
    data = os.read(file, 4096)
    while data and len(data) < max(10, int.from_bytes(data[2:6], "big")):  # a socket may give it in pieces
        more = os.read(file, 4096)
        if not more:
            break
        data += more
    return data
