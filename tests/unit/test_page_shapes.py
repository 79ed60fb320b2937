"""Racks drawn: what is kept of them, and what is not."""

from netboot.web.page import shapes


def told(machines: int) -> list[dict[str, object]]:
    runs = [
        {"status": "coming", "first": "n1", "count": machines - 1},
        {"status": "in-service", "first": "n", "count": 1},
    ]
    return [{"rack": "r1", "machines": machines, "runs": runs}]


def test_a_rack_is_drawn_once_and_one_of_thousands_is_not_kept() -> None:
    """A fleet without racks is one of all machines, and another one after each change."""
    shapes._kept.cache_clear()
    (small,), (large,) = shapes.racks(told(shapes.KEPT)), shapes.racks(told(shapes.KEPT + 1))
    assert shapes.racks(told(shapes.KEPT))[0].shape is small.shape
    assert shapes.racks(told(shapes.KEPT + 1))[0].shape == large.shape
    assert (shapes._kept.cache_info().currsize, large.shape.worst) == (1, "coming")
    assert dict(large.shape.counts) == {"coming": shapes.KEPT, "in-service": 1}
    assert large.shape.svg.count("<use ") == shapes.KEPT
    assert large.shape.svg.count("<path ") == 1
