"""JSON in few bytes, for columns of `data/state.db` that hold millions of nearly the same text.

A packed text is one byte that names the dictionary, then a raw DEFLATE stream (RFC 1951) that begins with it. JSON
never begins with that byte, so that rows of older versions, which hold the text itself, are told from packed ones.
"""

import zlib

MOST_BYTES = 8 * 1024**2
"""Of an unpacked text: far more than any row of ours, far less than a damaged one could ask for."""

_MARK = b"\x01"
_LEVEL = 4
"""Of what is gained by 9 nearly all, at a third of the time."""
_DICTIONARY = (
    b'{"at_ms":17,"boot":"","machine":"","peer":"192.0.2.","report":{"schema":1,"machine":"","mac":"52:54:00:",'
    b'"taken_ms":17,"uptime_ms":,"expected":["gpus","cpus","memory_gib","nics","ib_ports"],"checks":[{"name":"gpu-",'
    b'"status":"absent","status":"unknown","status":"warn","status":"fail","status":"pass","severity":"minor",'
    b'"severity":"major","severity":"critical","summary":"","remedy":"","ms":,"facts":{"'
    b'"failures":[{"at_ms":17,"uptime_ms":,"detail":"no link; cannot be fetched; sha256 does not match","peer":"'
    b'"phase":"Failed","source":"reported"'
    b'{"boot":"018","machine":"gpu-","script":{"at_ms":17,"cluster":"default","image":"","profile":"compute",'
    b'"channel":"stable","peer":"192.168."},"reached":[{"at_ms":17,"phase":"ScriptServed","source":"served",'
    b'"peer":"10."},{"at_ms":17,"phase":"KernelFetched","source":"served","peer":"10."},{"at_ms":17,'
    b'"phase":"InitrdFetched","source":"served","peer":"10."},{"at_ms":17,"phase":"InitrdStarted","source":"reported",'
    b'"uptime_ms":,"peer":"10."},{"at_ms":17,"phase":"ImageFetched","source":"reported","uptime_ms":,"detail":" MiB '
    b'from http://","peer":"10."},{"at_ms":17,"phase":"ImageVerified","source":"reported","uptime_ms":,"detail":'
    b'"verity","peer":"10."},{"at_ms":17,"phase":"Switched","source":"reported","uptime_ms":,"peer":"10."},'
    b'{"at_ms":17,"phase":"Booted","source":"reported","uptime_ms":,"peer":"10."},{"at_ms":17,"phase":"Joining",'
    b'"source":"reported","uptime_ms":,"peer":"10."},{"at_ms":17,"phase":"Attested","source":"observed",'
    b'"detail":"tpm","peer":"10."},{"at_ms":17,"phase":"TokenIssued","source":"observed","detail":"","peer":"10."},'
    b'{"at_ms":17,"phase":"CSRApproved","source":"observed","peer":""},{"at_ms":17,"phase":"NodeRegistered",'
    b'"source":"observed","peer":""},{"at_ms":17,"phase":"Ready","source":"observed","peer":""}]}'
)
"""What the texts have in common. Never changed: rows stand on it. Another one gets another mark."""


def pack(text: str) -> bytes:
    """The text, packed."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_DICTIONARY)
    return _MARK + packer.compress(text.encode()) + packer.flush()


def unpack(body: object) -> object:
    """The text that was packed, as bytes; whatever was not packed, as it is.

    Raises:
        ValueError: it was packed, and is damaged.
    """
    if not isinstance(body, bytes) or not body.startswith(_MARK):
        return body
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_DICTIONARY)
    try:
        text = unpacker.decompress(body[1:], MOST_BYTES)
    except zlib.error:
        raise ValueError("what was packed is damaged") from None
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("what was packed is cut off, or more than it was")
    return text
