"""The runner with checks that hang, crash and lie: each is a result, and nothing of it is left."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lab.errors import DeadlineError
from tests.processes import wait_for
from tests.unit.health.recorded import plant

pytestmark = pytest.mark.tools

HEAD = """
import json, os, signal, sys, time
from pathlib import Path
from images.node.health import runner
from images.node.health.machine import CannotTellError, Machine
from images.node.health.result import Check, Result
machine = Machine(Path(sys.argv[1]))
def well(machine): return Result("pass", "well", facts={"one": 1})
"""
TAIL = """
print(json.dumps(runner.run_all(checks, machine)))
"""


def run(body: str, root: Path, **environment: str) -> Any:
    """A process that runs the checks of `body` has ended by itself, and said what they found."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + body + TAIL, str(root)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tool(folder: Path, name: str, script: str) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def processes_of(path: Path) -> list[str]:
    """Command lines that name a path."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in lines if f"{path}" in line]


def nothing_is_left_of(program: Path) -> None:
    """All are killed, and the kernel ends them; who was not would be there for ever."""
    with suppress(DeadlineError):
        wait_for(lambda: not processes_of(program))
    assert processes_of(program) == []


def test_a_tool_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    hanging = tool(tmp_path, "nvidia-smi", "trap '' TERM INT HUP\nwhile :; do sh -c \"sleep 1000; : $0\"; done")
    found = run(
        """
def hang(machine):
    machine.run("nvidia-smi", "-q")
checks = [Check("hangs", "critical", 2, hang), Check("well", "major", 60, well)]
""",
        tmp_path,
        PATH=f"{hanging.parent}:/usr/bin:/bin",
    )
    assert [(one["name"], one["status"], one["severity"]) for one in found] == [
        ("hangs", "unknown", "critical"),
        ("well", "pass", "major"),
    ]
    assert found[0]["summary"] == "no answer within 2 s"
    assert found[1]["facts"] == {"one": 1}
    nothing_is_left_of(hanging)


def test_what_a_check_leaves_running_goes_with_it(tmp_path: Path) -> None:
    lingering = tool(tmp_path, "lingers", 'sh -c "while :; do sleep 1; done; : $0" >/dev/null 2>&1 &\necho started')
    found = run(
        """
def leaves(machine):
    return Result("pass", machine.run("lingers").text.strip())
checks = [Check("leaves", "minor", 60, leaves)]
""",
        tmp_path,
        PATH=f"{lingering.parent}:/usr/bin:/bin",
    )
    assert (found[0]["status"], found[0]["summary"]) == ("pass", "started")
    nothing_is_left_of(lingering)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def bad(machine): return 1 / 0", "a defect in this check: ZeroDivisionError: division by zero"),
        ("def bad(machine): os.kill(os.getpid(), signal.SIGSEGV)", "the check was ended by SIGSEGV"),
        ("def bad(machine): os._exit(0)", "the check ended without a result"),
        ("def bad(machine): raise CannotTellError('the card is silent', 'shout')", "the card is silent"),
        ("def bad(machine): raise SystemExit(0)", "the check ended without a result"),
        ("def bad(machine): return Result('splendid', 'x')", "the check ended without a result"),
        ("def bad(machine): return Result('pass', 'x' * 400_000)", "the check said more than 262144 bytes"),
        ("def bad(machine): return machine.run('no-such-tool')", "this image has no no-such-tool"),
    ],
)
def test_a_defect_of_one_check_is_its_result_and_no_other_s(tmp_path: Path, body: str, said: str) -> None:
    found = run(
        f"""
{body}
checks = [Check(f"well-{{at}}", "minor", 60, well) for at in range(5)]
checks.insert(2, Check("bad", "minor", 60, bad))
""",
        tmp_path,
    )
    assert [one["status"] for one in found] == ["pass", "pass", "unknown", "pass", "pass", "pass"]
    assert found[2]["summary"] == said


def test_a_process_that_cannot_be_ended_is_left_behind(tmp_path: Path) -> None:
    """As one that waits for a device in the kernel: here the kernel is made to say that it has not ended."""
    found = run(
        """
runner.REAP_SECONDS = 0.1
os.waitpid = lambda *_: (0, 0)
checks = [Check("stuck", "major", 0.5, lambda machine: time.sleep(1000))]
""",
        tmp_path,
    )
    assert found[0]["status"] == "unknown"
    assert found[0]["summary"].startswith("no answer within 0.5 s; process ")
    assert found[0]["summary"].endswith(" cannot be ended: it is stuck in the kernel")


def test_a_tool_that_says_too_much_is_cut_off(tmp_path: Path) -> None:
    talking = tool(tmp_path, "talks", "while :; do echo and then and then and then; done")
    found = run(
        """
def listen(machine):
    said = machine.run("talks")
    return Result("pass", f"{len(said.text)} {said.status}")
checks = [Check("talks", "minor", 60, listen)]
""",
        plant(tmp_path, "vm"),
        PATH=f"{talking.parent}:/usr/bin:/bin",
    )
    assert (found[0]["status"], found[0]["summary"]) == ("pass", f"{1024 * 1024} -9")
    nothing_is_left_of(talking)
