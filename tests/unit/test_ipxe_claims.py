"""From the wire to the console: whatever bytes a client sends, its script has the same lines and none of its syntax."""

from hypothesis import given
from hypothesis import strategies as st

from ipxe.render import waiting_script
from netboot.boot.waiting import waiting_values
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.decide import Boot, decide
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Inventory

VIEW = View.of(
    Snapshot(
        site="lab",
        published_ms=1,
        inventory=Inventory(),
        channels={},
        unusable={},
        images={},
        url="http://192.0.2.1",
        origins=("http://192.0.2.1",),
    )
)
escaped = st.binary(max_size=80).map(lambda raw: "".join(f"%{byte:02x}" for byte in raw))
field = st.one_of(
    escaped, st.text(max_size=80), st.sampled_from(["${net0/ip}", "%24%7Bx%7D", "a%0a:x", "||%20exit", "\\"])
)


@given(mac=field, uuid=field, serial=field, arch=field)
def test_the_wire_cannot_reach_the_syntax(mac: str, uuid: str, serial: str, arch: str) -> None:
    claim = parse_claim(f"mac={mac}&uuid={uuid}&serial={serial}&arch={arch}&platform={arch}")
    decision = decide(VIEW, claim)
    assert not isinstance(decision, Boot)
    script = waiting_script(waiting_values(decision, claim, "lab", "http://192.0.2.1", 30)).decode("ascii")
    lines = script.split("\n")
    starts = [line.split(" ")[0] for line in lines]
    said = 5 + len(decision.because)
    assert starts == ["#!ipxe", "imgfree", *["echo"] * said, ":wait", "echo", "sleep", "chain", "goto", ""]
    assert "$" not in script
    assert len(decision.because) == 1 + len(claim.ignored)
