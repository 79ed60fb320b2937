"""What the file system does not let an account do ends by 4, and no remedy has it replace what it may not read."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.cli.main import main
from netboot.cli.outcomes import ApiError, confirm
from tests.commands import Run
from tests.unit.test_cli_not_allowed import NOBODY

CONTEXTS = '{"contexts": [{"name": "fra", "server": "https://192.0.2.1:8081"}]}'
WAITED_FOR = ("makes the first", "makes it anew", "chown", "make it with", "make one")
"""Of remedies that replace a secret which is in use, or take the store away."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "site"
    main(["init", str(folder), "--join-url", "https://192.0.2.1:8443", "--url", "http://192.0.2.1:8080"])
    (folder / "data").mkdir(exist_ok=True)
    for name, text in (("data/lock", ""), ("given", "name,mac"), ("config/netboot/contexts.json", CONTEXTS)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    return folder


@pytest.fixture
def site(made: Path, open_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = open_path / "site"
    shutil.copytree(made, site, symlinks=True)
    monkeypatch.chdir(site)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(site / "config"))
    for path in (site, *site.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    (site / "closed").mkdir(mode=0o700)
    return site


@pytest.fixture
def nobody(site: Path) -> Iterator[None]:
    """An account that may look at the site, and may read no secret of it, nor write."""
    root = os.geteuid() == 0
    others = [path for path in site.rglob("*") if path.is_file() and not path.stat().st_mode & 0o004]
    if root:
        os.seteuid(NOBODY)
    else:
        for path in others:
            path.chmod(0)
        for path in (site, *site.rglob("*")):
            if path.is_dir():
                path.chmod(0o555)
        (site / "closed").chmod(0)
    yield
    if root:
        os.seteuid(0)
    (site / "closed").chmod(0o700)


REFUSED = [
    ("key", "sealing", "list"),
    ("key", "nonces", "list"),
    ("key", "proofs", "list"),
    ("access", "token", "list"),
    ("access", "token", "create", "one", "--role", "viewer", "--ttl", "1d"),
    ("access", "blocked"),
    ("config", "reload"),
    ("config", "bundle"),
    ("config", "join-certificate"),
    ("backup", "new.tar.gz"),
    ("restore", "--check", "given"),
    ("context", "use", "fra"),
    ("context", "list"),
    ("machine", "import", "--csv", "given", "--print"),
    ("image", "import", "closed"),
    ("image", "gc"),
    ("image", "revoke", "0" * 64, "--reason", "no", "--force-nothing-boots"),
    ("node", "record", "closed/new"),
    ("context", "add", "fra", "--server", "https://192.0.2.1:8081", "--token-file", "closed/token"),
]


@pytest.mark.parametrize("words", REFUSED)
def test_what_an_account_may_not_do_ends_by_4(run: Run, site: Path, words: tuple[str, ...], request: object) -> None:
    assert isinstance(request, pytest.FixtureRequest)
    run(*words, "--help")  # a command's modules are read where they can be
    request.getfixturevalue("nobody")
    ran = run(*words)
    assert (ran.status, ran.out) == (4, "")
    assert "Permission denied" in ran.err
    assert not [remedy for remedy in WAITED_FOR if remedy in ran.err]


def test_nobody_is_told_to_replace_what_is_in_use(run: Run, site: Path, request: pytest.FixtureRequest) -> None:
    run("config", "check")
    request.getfixturevalue("nobody")
    ran = run("config", "check")
    assert ran.status == 1
    assert ran.err.count("run this as an account that may read it") >= 4
    assert not [remedy for remedy in WAITED_FOR if remedy in ran.err]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("restore", "/nope"), "Error: there is no /nope\nRemedy: name a file that `netboot backup` wrote as FILE\n"),
        (
            ("cluster", "manifests", "--name", "nope"),
            "Error: the configuration has no cluster 'nope' (it has: none): add it to `clusters`\n",
        ),
        (
            ("image", "unrevoke", "deadbeef"),
            "Error: 0 revoked images begin with deadbeef: see `netboot image revocations`\n",
        ),
        (
            ("access", "token", "revoke", "nope"),
            "Error: no token has the name nope\nRemedy: see `netboot access token list`\n",
        ),
    ],
)
@pytest.mark.usefixtures("site")
def test_what_there_is_not_ends_by_3(run: Run, words: tuple[str, ...], said: str) -> None:
    assert run(*words, *(() if words[0] != "restore" else ("--check",))) == (3, "", said)


@pytest.mark.usefixtures("site")
def test_a_file_that_is_not_there_is_no_traceback(run: Run) -> None:
    ran = run("image", "rebuild", "/nope")
    assert (ran.status, ran.out) == (3, "")
    assert ran.err.startswith("Error: cannot use /")


def test_a_question_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing, pytest.raises(ApiError) as raised:
        monkeypatch.setattr("sys.stdin", nothing)
        confirm("Remove these?", "give --yes", err=False)
    assert raised.value.message == "an answer is needed, and standard input has none\nRemedy: give --yes"
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("kind", ["sealing", "nonces"])
@pytest.mark.usefixtures("site")
def test_keys_that_seal_are_listed_by_name(run: Run, kind: str) -> None:
    keys = [key["id"] for key in run("key", kind, "list", "-o", "json").json["keys"]]
    assert run("key", kind, "list", "-o", "name").out.split() == keys != []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_backup_that_is_ended_leaves_nothing(site: Path, number: signal.Signals) -> None:
    """While it waits for its reader: what it copied holds secrets."""
    with (site / "inventory/site.yaml").open("a") as inventory:
        inventory.write(f"# {os.urandom(300_000).hex()}\n")
    command = [sys.executable, "-m", "netboot.cli.main", "backup", "-"]
    with subprocess.Popen(command, cwd=site, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.read(1)
        assert list((site / "data").glob(".netboot-backup-*"))
        running.send_signal(number)
        assert running.wait(60) == 128 + number
    assert not list((site / "data").glob(".netboot-backup-*"))


def test_what_a_backup_that_was_killed_left_goes_with_the_next_one(site: Path, run: Run) -> None:
    with (site / "inventory/site.yaml").open("a") as inventory:
        inventory.write(f"# {os.urandom(300_000).hex()}\n")
    names = ("data/.netboot-backup-was_ki11", "out/.netboot-backup-0123abcd", "out/.netboot-backup-too_long_")
    left = [site / name for name in (*names, "out/.backup-2024", "out/.netboot-backup-too_new1")]
    (site / "out").mkdir()
    command = [sys.executable, "-m", "netboot.cli.main", "backup", "-"]
    with subprocess.Popen(command, cwd=site, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.read(1)
        (busy,) = (site / "data").glob(".netboot-backup-*")
        left[0].mkdir()
        for path in (left[0] / "0", *left[1:]):
            path.write_text("a secret")
        for path in (busy, *left[:-1]):
            os.utime(path, (0, 0))
        assert run("backup", "out/new.tar.gz").status == 0
        assert [path.exists() for path in (busy, *left)] == [True, False, False, True, True, True]
        running.kill()
    os.utime(busy, (0, 0))
    assert run("backup", "out/newer.tar.gz").status == 0
    assert not busy.exists()
    (site / ".netboot-restore-was_ki11").mkdir()
    os.utime(site / ".netboot-restore-was_ki11", (0, 0))
    again = ("restore", "out/newer.tar.gz", "--config", "there/netboot.yaml", "--check")
    assert run(*again).status == 0
    assert not (site / "there").exists()
    assert run("restore", "--check", "out/newer.tar.gz").status == 0
    assert list(site.glob(".netboot-restore-*"))
    assert run("restore", "--force", "out/newer.tar.gz").status == 0
    assert not list(site.glob(".netboot-restore-*"))
