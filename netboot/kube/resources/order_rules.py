"""What an API server keeps of an Order (`netboot.lifecycle.order_objects`), whoever writes: it stays as it was given,
and ended. Another one takes its place, by an id of its own."""

from netboot.kube.resources.cel import rule
from netboot.lifecycle.order_objects import OrderSpec

_LEFT_OUT = {"owner": "'operator'", "bare": "false", "local": "false"}
"""What is meant where these are not there."""


def _said(self: str, key: str) -> str:
    value = f"{self}.spec.{key}"
    return f"(has({value}) ? {value} : {_LEFT_OUT[key]})" if key in _LEFT_OUT else value


_SAME = " && ".join(
    f"{_said('self', key)} == {_said('oldSelf', key)}" for key in OrderSpec.model_fields if key not in ("id", "end")
)
ALL = (
    rule(
        f"self.spec.id != oldSelf.spec.id || ({_SAME})",
        "an order stays as it was given: another one has another spec.id",
    ),
    rule(
        "self.spec.id != oldSelf.spec.id || !has(oldSelf.spec.end) || "
        "(has(self.spec.end) && self.spec.end == oldSelf.spec.end)",
        "an order that has ended stays so: another one has another spec.id",
    ),
)
