"""What is rendered ahead is what would be rendered and journalled one by one."""

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import ipxe.render
from netboot.boot.scripts import Catalogue, Ready, boot_values
from netboot.lifecycle.bootid import Minter, belongs, mint
from netboot.lifecycle.decide import Boot, Refused, Unknown
from netboot.lifecycle.decided import Inputs, arguments_digest
from netboot.lifecycle.events import Record, ScriptRecord
from netboot.lifecycle.phases import Phase
from tests.records import KEY, boot_id
from tests.sockets.boot_server import IMAGE, INITRD, KERNEL, MAC1, MAC_OFF, MAC_STRANGER, digest_of, snapshot


def found(query: str) -> object:
    return Catalogue(snapshot(80), (5, 20)).find(query)


def test_a_script_rendered_ahead_is_the_script() -> None:
    catalogue = Catalogue(snapshot(80), (5, 20))
    ready = catalogue.find(f"mac={MAC1}")
    assert isinstance(ready, Ready)
    view, one = catalogue.view, catalogue.snapshot
    machine = view.index.named("gpu-001")
    assert machine is not None
    decision = Boot(
        machine=machine,
        profile=view.profiles["compute"],
        channel="stable",
        image=one.images[IMAGE],
        kernel_arguments=("console=ttyS0", "quiet"),
        origins=(one.origins,),
        because=(),
    )
    for number in (1, 2):
        boot = boot_id("gpu-001", number)
        assert ready.script.fill(boot) == ipxe.render.prepare(boot_values(decision, one, (5, 20))).fill(boot)
        assert len(re.findall(boot, ready.script.fill(boot).decode())) == 4


def test_a_record_put_together_ahead_is_the_record() -> None:
    catalogue = Catalogue(snapshot(80), (5, 20))
    ready, inputs, machine = (
        catalogue.find(f"mac={MAC1}"),
        Inputs(catalogue.view),
        catalogue.view.index.named("gpu-001"),
    )
    assert isinstance(ready, Ready) and machine is not None
    boot = boot_id("gpu-001", 1)
    adapter: TypeAdapter[object] = TypeAdapter(Record)
    record = ScriptRecord(
        at_ms=17,
        boot=boot,
        machine="gpu-001",
        cluster="default",
        image=IMAGE,
        profile="compute",
        channel="stable",
        decision=inputs.digest(machine, catalogue.snapshot.images[IMAGE]),
        script=hashlib.sha256(ready.script.fill("")).hexdigest()[:16],
        arguments=arguments_digest(("console=ttyS0", "quiet")),
        peer="2001:db8::1",
    )
    assert adapter.validate_json(ready.record(boot, 17, "2001:db8::1")) == record
    assert ready.record(boot, 17, "2001:db8::1") == record.model_dump_json()


def test_only_machines_that_boot_are_ready() -> None:
    unknown, refused = found(f"mac={MAC_STRANGER}"), found(f"mac={MAC_OFF}")
    assert isinstance(unknown, tuple) and isinstance(unknown[0], Unknown)
    assert isinstance(refused, tuple) and isinstance(refused[0], Refused)
    assert unknown[1].mac == MAC_STRANGER


def test_what_a_fetched_blob_means() -> None:
    phases = Catalogue(snapshot(80), (5, 20)).phases
    assert phases == {digest_of(KERNEL): Phase.KERNEL_FETCHED, digest_of(INITRD): Phase.INITRD_FETCHED}


@given(
    st.binary(min_size=1, max_size=100),
    st.from_regex(r"[a-z0-9]{1,63}", fullmatch=True),
    st.integers(min_value=0, max_value=1_000),
)
def test_the_fast_minter_mints_what_the_plain_one_does(key: bytes, machine: str, number: int) -> None:
    fast = Minter(key).mint(machine, IMAGE, 1_700_000_000_000, number)
    assert fast == mint(key, machine, IMAGE, 1_700_000_000_000, number)
    assert belongs(key, fast, machine)


def test_a_minter_can_be_used_again_and_again() -> None:
    minter = Minter(KEY)
    assert minter.mint("a", IMAGE, 1, 2) == minter.mint("a", IMAGE, 1, 2) == mint(KEY, "a", IMAGE, 1, 2)
