"""The board's watchdog is fed in the initrd, and closed before systemd goes on with it."""

import pytest

from tests.tools.images.boot_stage import Stage

pytestmark = pytest.mark.tools
ARM = "arm_watchdog cmdline; until [ -s device ] || [ ! -e run/watchdog.pid ]; do sleep 0.05; done; "
GONE = "while [ -d /proc/$fed ]; do sleep 0.05; done"


def device(stage: Stage, line: str = "console=ttyS0") -> None:
    (stage.folder / "cmdline").write_text(f"{line}\n")
    (stage.folder / "device").touch()


def test_it_is_fed_at_once_and_closed_in_order_before_the_switch(stage: Stage) -> None:
    """A file in the device's place: each feed is a byte, and a `V` at the end tells the driver that nobody died."""
    device(stage)
    script = (
        f"{ARM}fed=$(cat run/watchdog.pid); tr '\\0' f <device; disarm_watchdog; {GONE}; tr '\\0' f <device; ls run"
    )
    said = stage.sh(script, WATCHDOG="device").stdout
    assert said == "ffVevents\nimage\n"


@pytest.mark.parametrize("word", ["systemd.watchdog_sec=off", "systemd.watchdog_sec=0"])
def test_the_argument_that_stops_systemd_from_arming_it_stops_the_initrd_too(stage: Stage, word: str) -> None:
    device(stage, f"quiet {word}")
    assert stage.sh(f"{ARM}disarm_watchdog && ls run; cat device", WATCHDOG="device").stdout == "events\nimage\n"


def test_a_board_without_one_boots_as_ever(stage: Stage) -> None:
    assert stage.sh("arm_watchdog && disarm_watchdog && ls run", WATCHDOG="device").stdout == "events\nimage\n"


def test_a_driver_that_finds_no_device_is_not_worth_a_line(stage: Stage) -> None:
    """Those of several boards' watchdogs are loaded, and at most one finds its own."""
    (stage.folder / "lib/modules").mkdir(parents=True)
    (stage.folder / "lib/modules.order").write_text("sp5100_tco.ko\nmlx5_core.ko\n")
    fails = 'insmod() { case $1 in *sp5100*) echo "No such device" ;; *) echo "Invalid argument" ;; esac; return 1; }\n'
    script = f"{fails}LIB={stage.folder}/lib; load_modules"
    assert stage.sh(script).stdout == "netboot: module mlx5_core.ko: Invalid argument\n"
