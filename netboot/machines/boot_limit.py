"""How many boots a machine may begin before one of them is where it should be: more are a loop. The class's word is
over the default, the profile's over both, as with deadlines. docs/lifecycle.md says where the default comes from."""

from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field

NONE = 0
"""However many there are, no loop is told; `none` in files."""
DEFAULT = 5
MOST = 15
"""One less than boots are counted at all (`netboot.lifecycle.state.CLAIMS_KEPT`), so that every limit can be passed."""


def _none(value: object) -> object:
    return NONE if value == "none" else value


Boots = Annotated[int, Field(ge=NONE, le=MOST, strict=True), BeforeValidator(_none)]
"""What a class or profile declares; its files say `none` for `NONE` (`netboot.machines.judged`)."""


class BootLimit(NamedTuple):
    """`said_by`: whose word it is, like `class hgx-h100`; empty: nobody's, it is the default."""

    boots: int = DEFAULT
    said_by: str = ""


def limit_in_force(*declared: tuple[str, int | None]) -> BootLimit:
    """The limit. `declared`: who says what, the weakest first; None: nothing."""
    said = [BootLimit(boots, said_by) for said_by, boots in declared if boots is not None]
    return said[-1] if said else BootLimit()
