"""Keys of the archives that a site's images came from, for `netboot doctor`."""

from images.build import keyrings
from images.errors import ImageError
from images.recipe import inherit
from images.store.store import Store


def ending(store: Store, now: float) -> tuple[str, ...]:
    """What is to be said of keys that expired, or expire within 60 days of `now` (seconds since 1970), each once.

    Asked are the shipped recipes by whose names the store has images; where a recipe of a site's own lies it does not
    know. What cannot be told is said too.
    """
    said: dict[str, None] = {}
    try:
        names = sorted({image.manifest.name for image in store.images()} & set(inherit.shipped()))
    except ImageError as error:
        return (str(error),)
    for name in names:
        try:
            said |= dict.fromkeys(keyrings.check(inherit.load(inherit.find(name)), now))
        except ImageError as error:
            said |= dict.fromkeys(str(error).splitlines())
    return tuple(said)
