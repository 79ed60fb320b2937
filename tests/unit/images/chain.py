"""A build of quick steps, for killing it: each writes 3000 bytes in several pieces and tells its caller of each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from images.build.cache import Cache
from images.build.step import Product, Say, Step
from tests.unit.images.samples import unplanned


@dataclass(frozen=True)
class Piece:
    text: str
    before: Product | None = None


def build(folder: Path, tick: Callable[[], None]) -> bytes:
    """Build the chain in a cache and return what its last step made."""

    def write(piece: Piece, out: Path, say: Say) -> None:
        with (out / "data").open("wb", buffering=0) as file:
            tick()
            file.write(piece.text.encode() * 1000)
            tick()
            earlier = (piece.before / "data").read_bytes()[:2000] if piece.before else b"." * 2000
            file.write(earlier[:1000])
            tick()
            file.write(earlier[1000:])
            tick()
        say("written")

    steps = [Step(f"step-{name}", 1, write, ("data",), unplanned) for name in "abc"]
    product: Product | None = None
    tick()
    with Cache(folder) as cache:
        for step, text in zip(steps, "abc", strict=True):
            tick()
            product, _ = cache.obtain(step, Piece(text, product), lambda _: tick())
            tick()
        assert product
        result = (product / "data").read_bytes()
        tick()
    tick()
    return result
