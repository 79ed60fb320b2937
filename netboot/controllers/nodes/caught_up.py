"""How far the state is, as the projection says: a Node that was seen later may be of a boot that it does not know."""

from netboot.lifecycle.errors import CannotTellError
from netboot.status.controllers import ProjectionStatus
from netboot.stores.status import StatusFolder


def joins_read_up_ms(status: StatusFolder) -> int:
    """What join wrote down before that moment of `netboot.status.up_ms` is in the state; 0: nobody can tell now."""
    try:
        said = status.read("projection", ProjectionStatus)
    except CannotTellError:
        return 0
    return said.joins_read_up_ms if said is not None else 0
