"""`netboot fabric` with tools that say what they are told to: whole outputs, exit statuses, Ctrl-C."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands import Ran, Run
from tests.sites import make_site

MACHINES = """\
machines:
  - {name: a, match: {serial: CZA}, profile: p, class: big, node: {labels: {topology.kubernetes.io/rack: R1}}}
  - {name: b, match: {serial: CZB}, profile: p, class: big, node: {labels: {topology.kubernetes.io/rack: R1}}}
  - {name: c, match: {serial: CZC}, profile: p, node: {labels: {row: "7"}, addresses: [192.0.2.3]}}
  - {name: d, match: {serial: CZD}, profile: p, node: {name: node-d, labels: {row: "7"}}}
  - {name: off, match: {serial: CZO}, profile: p, enabled: false}
profiles: [{name: p, channel: stable}]
channels: [{name: stable}]
classes: [{name: big}]
"""
IPERF3 = """\
#!/bin/sh
[ "$1" = --server ] && exit 0
case "$FROM $2" in
%s
*) gbits=390 ;;
esac
echo "{\\"end\\": {\\"sum_received\\": {\\"bits_per_second\\": ${gbits}e9}}}"
"""
VIA = "env FROM={machine}"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_site(tmp_path / "site", inventory=MACHINES)
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path / "site")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    tool(tmp_path, "")
    return tmp_path


def tool(folder: Path, cases: str, script: str = IPERF3) -> None:
    """An iperf3. `cases`: by the source and the target's address."""
    path = folder / "bin/iperf3"
    path.parent.mkdir(exist_ok=True)
    path.write_text(script % cases if "%s" in script else script)
    path.chmod(0o755)


def check(run: Run, *arguments: str) -> Ran:
    return run("fabric", "check", "--over", "tcp", "--via", VIA, *arguments)


def test_nobody_is_slow(site: Path, run: Run) -> None:
    status, out, err = check(run, "--all")
    assert (status, err) == (0, "")
    assert out == (
        "machine  sends Gbit/s  receives Gbit/s\n"
        "a        390           390            \n"
        "b        390           390            \n"
        "c        390           390            \n"
        "d        390           390            \n"
        "\n12 of 12 measured: median 390, MAD 0 Gbit/s\n"
    )


def test_a_slow_machine_and_a_slow_pair_are_named(site: Path, run: Run) -> None:
    tool(site, '"b "*) gbits=190 ;;\n"a 192.0.2.3") gbits=200 ;;')
    status, out, _ = check(run, "--all")
    assert status == 6
    assert out.splitlines()[2].split() == ["b", "190", "SLOW", "390"]
    assert out.endswith(
        "\nslow: b sends 190 Gbit/s, the others' median is 390\n"
        "\nslow: a to c 200 Gbit/s\n"
        "\n12 of 12 measured: median 390, MAD 0 Gbit/s\n"
    )
    told = json.loads(check(run, "--all", "--output", "json").out)
    assert told["slow"] == {
        "hosts": [{"host": "b", "way": "sends", "gbps": 190.0, "usual": 390.0}],
        "pairs": [{"from": "a", "to": "c", "gbps": 200.0, "words": ""}],
    }
    assert told["hosts"]["b"] == {"sends": 190.0, "receives": 390.0}
    assert [(one["from"], one["to"]) for one in told["pairs"]] == sorted(
        (one, other) for one in "abcd" for other in "abcd" if one != other
    )
    assert (told["planned"], told["measured"], told["interrupted"], told["median_gbps"]) == (12, 12, False, 390.0)


def test_what_cannot_be_measured_is_said_with_the_machine_whose_fault_it_is(site: Path, run: Run) -> None:
    broken = '#!/bin/sh\nif [ "$FROM" = a ]; then echo "iperf3: not on this host" >&2; exit 127; fi\n'
    tool(site, "", broken + IPERF3.replace("#!/bin/sh\n", "") % "")
    status, out, _ = check(run, "a", "b")
    assert status == 5
    assert "\nnot measured: a to b: a: iperf3: not on this host\n" in out
    assert out.endswith("\n1 of 2 measured: median 390, MAD 0 Gbit/s\n")


def test_a_server_that_cannot_start_is_named_and_not_its_client(site: Path, run: Run) -> None:
    words = '#!/bin/sh\n[ "$1" = --server ] && { echo "no memory here" >&2; exit 1; }\n'
    tool(site, "", words + "echo 'unable to connect to server: Connection refused' >&2; exit 1\n")
    out = check(run, "a", "b").out
    assert "\nnot measured: a to b: b: no memory here\n" in out
    assert out.endswith("\n0 of 2 measured: nothing\n")


ENDLESS = '[ "$FROM" = %s ] && { echo \'"error": "all is well"\'; exec yes 390; }\n'


def test_who_says_too_much_is_ended_and_named(site: Path, run: Run) -> None:
    """As the client of a measurement; the other way he serves, and the client has its number."""
    tool(site, "", "#!/bin/sh\n" + ENDLESS % "a" + IPERF3.replace("#!/bin/sh\n", "") % "")
    status, out, _ = check(run, "a", "b")
    assert status == 5
    assert "\nnot measured: a to b: a: ended, for it wrote more than 1024 KiB\n" in out
    assert out.endswith("\n1 of 2 measured: median 390, MAD 0 Gbit/s\n")


def test_a_server_that_says_too_much_is_named(site: Path, run: Run) -> None:
    tool(site, "", "#!/bin/sh\n" + ENDLESS % "a" + "echo 'unable to connect to server: Connection refused'; exit 1\n")
    assert "\nnot measured: b to a: a: ended, for it wrote more than 1024 KiB\n" in check(run, "a", "b").out


def test_a_floor_judges_two(site: Path, run: Run) -> None:
    assert check(run, "a", "b", "--least", "390").status == 0
    assert check(run, "a", "b", "--least", "391").status == 6


@pytest.mark.parametrize("few", [["a", "b"], ["a", "b", "c"], ["--all", "--rounds", "2"]])
def test_too_few_for_a_verdict_are_not_in_order(site: Path, run: Run, few: list[str]) -> None:
    tool(site, '"b "*) gbits=190 ;;\n*" b") gbits=190 ;;' if len(few) == 3 and few[0] == "a" else "")
    status, out, _ = check(run, *few)
    assert status == 5
    assert "\ncannot tell who is slow: that needs four machines and three rounds, or --least\n" in out
    assert json.loads(check(run, *few, "--output", "json").out)["judged"] is False


def test_the_operator_s_own_environment_reaches_his_command(
    site: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in for kubectl's credentials reads variables of its own: without them nothing is reached."""
    monkeypatch.setenv("AWS_PROFILE", "site")
    tool(site, "", '#!/bin/sh\n[ "$AWS_PROFILE" = site ] || exit 1\n' + IPERF3 % "")
    assert check(run, "--all").status == 0


@pytest.mark.parametrize(
    ("arguments", "machines", "rounds"),
    [
        (["--rack", "R1"], "ab", 2),
        (["--rack", "7", "--rack-label", "row"], "cd", 2),
        (["--class", "big"], "ab", 2),
        (["b", "d", "a"], "abd", 6),
        (["--all", "--rounds", "2"], "abcd", 8),
    ],
)
def test_which_machines_meet(site: Path, run: Run, arguments: list[str], machines: str, rounds: int) -> None:
    told = json.loads(check(run, *arguments, "--output", "json").out)
    assert "".join(sorted(told["hosts"])) == machines
    assert told["planned"] == told["measured"] == rounds


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "say which machines: names, --rack, --class or --all, one of them"),
        (["a", "--all"], 2, "say which machines: names, --rack, --class or --all, one of them"),
        (["a", "bb"], 3, "Error: no machine is named 'bb'; did you mean 'b'?\nRemedy: see the names in "),
        (["a", "a"], 2, "1 of 5 machines are chosen, and a pair needs two: choose more"),
        (["a", "b", "off"], 4, "Error: off may not boot (`enabled: false` in the inventory)\nRemedy: leave it out\n"),
        (
            ["--rack", "R2"],
            2,
            (
                "0 of 5 machines are chosen, and a pair needs two: choose more "
                "(a machine's rack is its node's label topology.kubernetes.io/rack)"
            ),
        ),
        (["a", "b", "--via", "ssh root@a"], 2, "{machine} is not in it: put it where the machine's name is to be"),
        (
            ["a", "b", "--via", "ssh '{machine}"],
            2,
            "ssh '{machine} is no command line (No closing quotation): close its quotes",
        ),
    ],
)
def test_what_is_wrong_is_said(site: Path, run: Run, arguments: list[str], status: int, words: str) -> None:
    done = check(run, *arguments)
    assert (done.status, done.out) == (status, "")
    assert words in done.err


def test_pods_are_bound_to_their_nodes_and_end_by_themselves(site: Path, run: Run) -> None:
    namespace, *pods = yaml.safe_load_all(run("fabric", "pods", "c", "d", "--image", "registry.example/tools").out)
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    assert [(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in pods] == [
        ("fabric-c", "c"),
        ("fabric-d", "node-d"),
    ]
    spec: dict[str, Any] = pods[0]["spec"]
    assert (spec["hostNetwork"], spec["activeDeadlineSeconds"], spec["automountServiceAccountToken"]) == (
        True,
        14400,
        False,
    )
    assert spec["containers"] == [
        {
            "name": "tools",
            "image": "registry.example/tools",
            "command": ["sleep", "infinity"],
            "securityContext": {"privileged": True},
        }
    ]
    tcp = run("fabric", "pods", "c", "d", "--image", "x", "--over", "tcp").out
    assert "privileged: true" not in tcp


def test_ctrl_c_ends_all_that_runs_and_tells_what_was_measured(site: Path) -> None:
    pids = site / "pids"
    os.mkfifo(pids)
    tool(site, "", f'#!/bin/sh\n[ "$1" = --server ] && exec sleep 60\necho $$ > {pids}\nexec sleep 60\n')
    command = [sys.executable, "-m", "netboot.cli.main", "fabric", "check", "a", "b", "--over", "tcp", "--via", VIA]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with os.fdopen(os.open(pids, os.O_RDONLY | os.O_NONBLOCK)) as said:
            assert select.select([said], [], [], 180)[0], process.communicate(timeout=60)
            client = int(said.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=180)
    assert process.returncode == 130, err
    assert out.endswith("\n0 of 2 measured, interrupted: nothing\n")
    with pytest.raises(ProcessLookupError):
        os.kill(client, 0)
