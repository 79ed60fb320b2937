"""What the fetcher says."""

from images.values.strict import Strict
from netboot.status import Condition, Timed


class Transfer(Strict):
    """An image on its way: its digest, and how many bytes of how many are here."""

    image: str
    bytes: int
    of: int


class FetcherStatus(Condition, Timed):
    """`images`: digest → why it is not here yet; `fetched`, `bytes`, `failed`: since the process started."""

    images: dict[str, str]
    transfer: Transfer | None
    fetched: int
    bytes: int
    failed: int
