"""Standard output that cannot be written, and Ctrl-C before a command begins: of real processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "netboot.cli.main")
REMEDY = "Remedy: send it elsewhere, or make room where it goes; what the command did besides is done\n"


def ended(command: Sequence[str], stdout: int) -> tuple[int, str]:
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [("--help",), ("cluster", "crds"), ("cluster", "--help"), ("completion", "bash")])
def test_a_full_disk_is_an_error_with_its_cause(words: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        told = ended((*COMMAND, *words), full)
    finally:
        os.close(full)
    assert told == (1, f"Error: cannot write to standard output: No space left on device\n{REMEDY}")


def test_one_that_was_closed_is_an_error_and_no_file_has_its_number() -> None:
    told = ended(("sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "cluster", "crds"), subprocess.DEVNULL)
    assert told == (1, f"Error: cannot write to standard output: Bad file descriptor\n{REMEDY}")


@pytest.mark.parametrize("words", [("--help",), ("cluster", "crds"), ("boot", "list", "--help")])
def test_a_reader_that_has_gone_is_nobodys_fault(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended((*COMMAND, *words), writing) == (141, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("module", ["click", "netboot.cli.commands", "netboot.cli.cluster"])
def test_ctrl_c_while_modules_are_imported(module: str) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from netboot.cli.main import main\n"
        "main(['cluster', 'crds'])\n"
    )
    status, said = ended((sys.executable, "-c", program), subprocess.DEVNULL)
    assert (status, said.strip()) == (130, "interrupted")


@pytest.mark.parametrize("errors", [">/dev/full", ">&-"])
def test_an_error_that_cannot_be_said_keeps_its_status_and_goes_nowhere_else(tmp_path: Path, errors: str) -> None:
    words = ("context", "use", "none")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    shell = ("sh", "-c", f'exec "$@" 2{errors}', "sh", *COMMAND, *words)
    done = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (3, "")


def test_nothing_at_all_is_open() -> None:
    told = ended(("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *COMMAND, "cluster", "crds"), subprocess.DEVNULL)
    assert told == (1, "")


def test_descriptors_that_were_closed_are_taken_by_nobody() -> None:
    program = "import os; from netboot.cli import standard_output as out; out.watch(); os.fstat(1); os.fstat(2)"
    shell = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", program)
    assert ended(shell, subprocess.DEVNULL) == (0, "")
