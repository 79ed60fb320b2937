"""docs/first-rack.md quotes what consoles say, and they say it."""

import re
from pathlib import Path

import ipxe.render
from netboot.boot.waiting import _REFUSED, waiting_values
from netboot.lifecycle.decide import Claim, Refused, Unavailable, decide
from netboot.lifecycle.published import View
from tests.sockets.boot_server import snapshot

PAGE = (Path(__file__).parents[2] / "docs" / "first-rack.md").read_text(encoding="utf-8")
URL = "http://192.0.2.1:8080"


def said(script: bytes | str) -> list[str]:
    text = script.decode() if isinstance(script, bytes) else script
    return re.findall(r"^echo (netboot: .*)$", text, re.MULTILINE)


def test_who_is_not_declared_reads_what_the_page_shows() -> None:
    claim = Claim(
        mac="52:54:00:12:34:56",
        uuid="4c4c4544-0042-3510-8052-b4c04f4e4d31",
        serial="7X2K9L3",
        architecture="amd64",
    )
    decision = decide(View.of(snapshot(8080)), claim)
    lines = said(ipxe.render.waiting_script(waiting_values(decision, claim, "main", URL, 30)))  # type: ignore[arg-type]
    assert len(lines) == 7
    assert "\n".join(lines) in PAGE


def test_headlines_of_the_table_are_those_of_consoles() -> None:
    for reason in _REFUSED:
        names = ("gpu-001", "gpu-002") if reason == "ambiguous" else ("gpu-001",)
        refused = Refused(reason=reason, machines=names, because=())
        lines = said(ipxe.render.waiting_script(waiting_values(refused, Claim(), "main", URL, 30)))
        assert f"| `{lines[0]}` |" in PAGE
    waits = Unavailable(reason="busy", because=())
    lines = said(ipxe.render.waiting_script(waiting_values(waits, Claim(), "main", URL, 30)))
    assert f"| `{lines[0]}` |" in PAGE
