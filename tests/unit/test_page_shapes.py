"""Racks drawn: what is kept of them, and what is not."""

from netboot.clock import rfc3339
from netboot.web.page import shapes


def told(machines: int) -> list[dict[str, object]]:
    runs = [
        {"status": "coming", "first": "n1", "count": machines - 1, "position": None, "gap": False},
        {"status": "in-service", "first": "n", "count": 1, "position": None, "gap": False},
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


def test_a_rack_names_who_is_not_in_order_the_gravest_first() -> None:
    runs = [("in-service", "gpu-001", 3), ("coming", "gpu-004", 2), ("late", "gpu-006", 1), ("off", "gpu-007", 1)]
    (drawn,) = shapes.racks([rack(runs)])
    assert drawn.named == "gpu-006: late, gpu-004 and 1 after it: coming"
    assert dict(drawn.shape.counts) == {"late": 1, "coming": 2, "in-service": 3, "off": 1}
    assert [each.named for each in shapes.racks([rack(runs[:1])])] == [""]
    many = [("ill", f"gpu-{number:03}", 1 + number % 2) for number in range(10)]
    assert shapes.racks([rack(many)])[0].named.endswith("gpu-007 and 1 after it: ill, 3 more")


def test_a_gap_between_units_is_a_line_and_who_is_not_well_is_said_with_its_unit() -> None:
    alike = {"status": "in-service", "first": "gpu-001", "count": 17, "position": 40, "gap": False}
    below = {"status": "late", "first": "gpu-018", "count": 1, "position": 7, "gap": True}
    (drawn,) = shapes.racks([{"rack": "r1", "machines": 18, "runs": [alike, below]}])
    assert drawn.named == "gpu-018 in unit 7: late"
    assert drawn.shape.svg.count('<path class="free" d="M12.5 13v10"/>') == 1
    same = {**below, "status": "in-service"}
    assert shapes.merged([alike, same]) == [alike, same]
    assert shapes.merged([alike, {**same, "gap": False}]) == [{**alike, "count": 18}]
    nowhere = {**alike, "first": "gpu-019", "count": 1, "position": None}
    assert shapes.merged([alike, nowhere, nowhere]) == [alike, {**nowhere, "count": 2}]
    (drawn,) = shapes.racks([{"rack": "r1", "machines": 19, "runs": [alike, nowhere, nowhere]}])
    assert drawn.shape.svg.count('<path class="free" d="M12.5 13v10"/>') == 1


def test_what_goes_on_is_drawn_until_now_and_its_deadline_where_that_fits() -> None:
    span = {"step": "ScriptServed", "until": "Switched", "begin_at": rfc3339(0), "end_at": rfc3339(10), "missing": ()}

    def drawn(due: int | None) -> tuple[list[tuple[str, str, float, float, bool]], float | None]:
        deadline = rfc3339(due) if due is not None else None
        goes_on = {"step": "Switched", "begin_at": rfc3339(10), "deadline": deadline, "late": False}
        bars = shapes.waterfall([span], {**goes_on, "now_at": rfc3339(50)})
        return [(each.step, each.until, each.x, each.width, each.goes_on) for each in bars], bars[-1].mark

    to_now = [("ScriptServed", "Switched", 0.0, 200.0, False), ("Switched", "now", 200.0, 800.0, True)]
    assert [drawn(due) for due in (None, 101)] == [(to_now, None)] * 2
    assert drawn(25) == (to_now, 500.0)
    to_due = [("ScriptServed", "Switched", 0.0, 100.0, False), ("Switched", "now", 100.0, 400.0, True)]
    assert drawn(100) == (to_due, 1000.0)
    assert shapes.waterfall([]) == []


def rack(runs: list[tuple[str, str, int]]) -> dict[str, object]:
    more = {"position": None, "gap": False}
    named = [{"status": status, "first": first, "count": count, **more} for status, first, count in runs]
    return {"rack": "r1", "machines": sum(count for *_, count in runs), "runs": named}
