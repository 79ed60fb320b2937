"""What `/readyz` says of machines that could not boot."""

from typing import Any

import pytest

from netboot.lifecycle.published import View
from netboot.machines.values import Machine
from netboot.web.bootable import Bootables, bootable
from tests.unit.test_decide import ARM, BARE, BROKEN, OFF, ONE, TWO, VIEW


def view(*machines: Machine, **more: Any) -> View:
    inventory = VIEW.snapshot.inventory.model_copy(update={"machines": machines})
    return View.of(VIEW.snapshot.model_copy(update={"inventory": inventory, **more}))


UNUSED = "its manifest is signed by a key that is not trusted here"


@pytest.mark.parametrize(
    ("machines", "nobody", "message", "remedy"),
    [
        ((ONE, TWO, OFF), False, "all 2 can boot", ""),
        ((), False, "all 0 can boot", ""),
        (
            (ONE, BARE),
            False,
            "1 of 2 machines cannot boot (bare); bare: channel empty has no image",
            "set an image: `netboot channel set CHANNEL IMAGE`",
        ),
        (
            (BARE,),
            False,
            "1 of 1 machines cannot boot (bare); bare: channel empty has no image",
            "set an image: `netboot channel set CHANNEL IMAGE`",
        ),
        (
            (ONE, BROKEN, OFF),
            False,
            f"1 of 2 machines cannot boot (broken); broken: the image of channel broken cannot be used: {UNUSED}",
            "`netboot channel list` says why; set the channel to another image, or put that one right",
        ),
        (
            (BROKEN, ARM, OFF),
            True,
            "2 of 2 machines cannot boot (broken, arm)",
            "`netboot channel list` says why; set the channel to another image, or put that one right",
        ),
    ],
)
def test_machines_that_could_not_boot_are_counted_and_named(
    machines: tuple[Machine, ...], nobody: bool, message: str, remedy: str
) -> None:
    said = bootable(view(*machines))
    assert (said.nobody, said.detail.ok, said.detail.remedy) == (nobody, not remedy, remedy)
    assert said.detail.message.startswith(message)


def test_it_is_worked_out_once_for_each_snapshot() -> None:
    of, first, other = Bootables().of, view(ONE), view(BROKEN)
    assert of(first) is of(first)
    assert (of(other).nobody, of(first).nobody) == (True, False)
