"""Regular expressions written for Go (RE2), as Python's `re` has them. Pure.

Alike but for three things: Go lets flags begin in the middle of a group, where they hold until its end; it calls the
end of the text `\\z`; and a bracket inside of a class is no more than itself.
"""

import re

_FLAGS = re.compile(r"\(\?(-?[ims]+)\)")
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?-?[ims]+\)|.", re.DOTALL)
"""An escape, a class, flags, or one character."""


def compiled(pattern: str) -> re.Pattern[bytes]:
    """The pattern for bytes.

    Raises:
        re.error: it is none.
    """
    return re.compile(translated(pattern).encode())


def translated(pattern: str) -> str:
    """The same in Python's words: flags in the middle become groups of their own, ended where Go ends them."""
    out: list[str] = []
    opened: list[list[str]] = [[]]  # for each group around: the flags that began in it
    for piece in _PIECE.findall(pattern):
        flags = _FLAGS.fullmatch(piece)
        if flags:
            opened[-1].append(f"(?{flags[1]}:")
            out.append(opened[-1][-1])
        elif piece == "(":
            opened.append([])
            out.append(piece)
        elif piece == ")":
            out.append(")" * (1 + len(opened.pop())))
        elif piece == "|":
            out.append(")" * len(opened[-1]) + "|" + "".join(opened[-1]))
        else:
            out.append(_one(piece))
    return "".join(out) + ")" * len(opened[0])


def _one(piece: str) -> str:
    if piece == r"\z":
        return r"\Z"
    if piece.startswith("[") and len(piece) > 1:
        head = 2 if piece[1] == "^" else 1
        return piece[:head] + re.sub(r"(\\.)|\[", lambda match: match[1] or r"\[", piece[head:])
    return piece
