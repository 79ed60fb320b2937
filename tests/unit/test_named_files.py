"""A file or folder that is named to be read: not there is 3, not to be read by this account 4, and whatever else is in
the way 1, by whichever option or argument of whichever command; the words name it, and what to do."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from images.store.store import Store
from netboot.cli.commands import cli
from netboot.cli.given_files import GivenFile, NamedFile, NamedFolder
from netboot.cli.main import main
from tests.commands import Run
from tests.unit.images import samples
from tests.unit.images.test_audit import bill
from tests.unit.test_cli_help import commands
from tests.unit.test_cli_not_allowed import closed

NAMED = (GivenFile, NamedFile, NamedFolder)
TEXTS = {"RECIPE", "[CLUSTER=]FILE"}
"""Which name a file or something else."""
NOT_READ = {
    ("export", "--to"),
    ("context add", "--certificate-authority"),
    ("context add", "--token-file"),
    ("dhcp config", "--tftp-root"),
    ("image lock", "--output"),
    ("init", "--state"),
    ("init", "DIR"),
    ("machine declare", "--out"),
    ("machine import", "--out"),
    ("node record", "FOLDER"),
    ("restore", "--config"),
}
"""Which are written by the command, or read elsewhere or later."""
SERVICE = ("--server", "http://127.0.0.1:1")
GARBAGE: dict[str, tuple[str, ...]] = {
    "--admin-kubeconfig": ("cluster", "kubeconfigs", "--admin-kubeconfig", "given"),
    "--authority": ("image", "pull", "127.0.0.1:1/one:latest", "--authority", "given"),
    "--authority-key": ("config", "join-certificate", "--authority-key", "given"),
    "--certificate-authority": ("machine", "list", *SERVICE, "--certificate-authority", "given"),
    "--config": ("config", "show", "--config", "given"),
    "--credentials": ("image", "pull", "127.0.0.1:1/one:latest", "--credentials", "given"),
    "--csv": ("machine", "import", "--csv", "given", "--print"),
    "--data": ("image", "audit", "one", "--data", "given"),
    "--file": ("boot", "proof", "--file", "given"),
    "--issuer-certificate-authority": ("login", "--issuer-certificate-authority", "given"),
    "--kubeconfig": ("export", "--to", "exported", "--kubeconfig", "given"),
    "--netbox": ("machine", "import", "--netbox", "given", "--print"),
    "--redfish-json": ("machine", "import", "--redfish-json", "given", "--print"),
    "--sign": ("config", "bundle", "--sign", "given"),
    "--signature": ("config", "bundle", "--signature", "given.sig"),
    "--spki-file": ("token", "issue", "--machine", "one", "--spki-file", "given"),
    "--token-file": ("machine", "list", *SERVICE, "--token-file", "given"),
    "--uki-cert": ("image", "build", "own.yaml", "--uki-key", "secrets/proof.key", "--uki-cert", "given"),
    "--uki-key": ("image", "build", "own.yaml", "--uki-key", "given", "--uki-cert", "tls/ca.crt"),
    "FILE": ("restore", "--check", "given"),
    "RECIPE": ("image", "sources", "check", "given.yaml"),
}


def name_of(parameter: click.Parameter) -> str:
    """As one types it, or as usage has it."""
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.human_readable_name


def named(command: click.Command) -> Iterator[click.Parameter]:
    """Its options and arguments that name what is read."""
    yield from (each for each in command.params if isinstance(each.type, NAMED))


def given(command: click.Command, parameter: click.Parameter, path: Path) -> tuple[str, ...]:
    """As one types it, with any word for each argument before it."""
    if isinstance(parameter, click.Option):
        return name_of(parameter), str(path)
    arguments: list[click.Parameter] = [each for each in command.params if isinstance(each, click.Argument)]
    return (*("x" for _ in arguments[: arguments.index(parameter)]), str(path))


ALL = dict(commands("", cli))


@pytest.fixture
def folder(open_path: Path) -> Path:
    (open_path / "closed").touch()
    (open_path / "closed-folder").mkdir()
    (open_path / "folder").mkdir()
    (open_path / "file").touch()
    return open_path


def test_each_that_names_a_file_goes_by_the_rule() -> None:
    others = {
        (command, parameter.metavar or name_of(parameter))
        for command, one in ALL.items()
        for parameter in one.params
        if isinstance(parameter.type, click.Path | click.File) and not isinstance(parameter.type, NAMED)
    }
    assert others == NOT_READ


@pytest.mark.parametrize("command", [name for name, one in ALL.items() if any(named(one))])
def test_what_is_in_the_way_ends_alike(command: str, folder: Path, run: Run) -> None:
    words = command.split()
    run(*words, "--help")  # a command's modules are read where they can be
    for parameter in named(ALL[command]):
        is_folder, option = isinstance(parameter.type, NamedFolder), name_of(parameter).partition("|")[0]
        made = isinstance(parameter.type, NamedFolder) and parameter.type.made
        tried = {"none": 0 if made else 3, "file" if is_folder else "folder": 1}
        for name, status in tried.items():
            if status:
                told(run(*words, *given(ALL[command], parameter, folder / name)), status, folder / name, option)
        shut = folder / ("closed-folder" if is_folder else "closed")
        with closed(shut):
            ran = run(*words, *given(ALL[command], parameter, shut))
        told(ran, 4, shut, option)


@pytest.mark.parametrize("command", [name for name, one in ALL.items() if any(named(one))])
def test_an_empty_name_is_told_as_one(command: str, run: Run) -> None:
    """As of a variable of a script that is not set; it would be this folder."""
    for parameter in named(ALL[command]):
        ran = run(*command.split(), *given(ALL[command], parameter, Path("one"))[:-1], "")
        last = ran.err.splitlines()[-1]
        assert (ran.status, ran.out) == (2, "")
        assert last.endswith(": the name is empty: give that of a file or folder"), last


def test_doctor_looks_at_all_else_beside_a_kubeconfig_that_cannot_be_used(
    made: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    admin = made / "exec"
    admin.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9'}}]\nusers: [{name: a, user: {exec: {}}}]\n"
    )
    admin.chmod(0o600)
    found = run("doctor", "--output", "json", "--admin-kubeconfig", admin).json["diagnoses"]
    assert [each["words"][:7] for each in found if each["name"] == "running"] == ["nothing"]
    (told,) = [each for each in found if each["outcome"] == "unknown"]
    assert told["name"] == "DaemonSets and the gate"
    assert told["words"].startswith(f"cannot be told: {admin} uses exec, which this service does not do: it takes a ")
    assert told["remedy"] == "give a kubeconfig that works from here"
    empty = run("doctor", "--admin-kubeconfig", "default=")
    said = "Error: Invalid value for '--admin-kubeconfig': the name is empty: give that of a file or folder"
    assert (empty.status, empty.err.splitlines()[-1]) == (2, said)


def told(ran: object, status: int, path: Path, option: str) -> None:
    assert isinstance(ran, tuple)
    assert (ran[0], ran[1]) == (status, "")
    assert str(path) in ran[2]
    assert f"{' with ' if option.startswith('-') else ' as '}{option}\n" in ran[2] or "make a new site" in ran[2]


@pytest.mark.parametrize("words", [("image", "build"), ("image", "lock"), ("image", "sources", "check")])
def test_recipes_end_alike(words: tuple[str, ...], folder: Path, run: Run) -> None:
    run(*words, "--help")
    assert run(*words, folder / "none.yaml").status == 3
    assert run(*words, f"{folder}/folder").status == 1
    with closed(folder / "closed"):
        ran = run(*words, folder / "closed")
    assert ran.status == 4
    assert f"{folder}/closed cannot be read: Permission denied\nRemedy: run this as an account that may" in ran.err


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("made") / "site"
    main(["init", str(site), "--join-url", "https://192.0.2.1:8443", "--url", "http://192.0.2.1:8080"])
    (site / "own.yaml").write_text("base: debian-12-minimal\nuki: true\n")
    with (site / "netboot.yaml").open("a") as configuration:
        configuration.write('clusters: {default: {authority: tls/ca.crt, endpoints: ["https://127.0.0.1:9"]}}\n')
    files = samples.parts(site / "parts", "one")
    (site / "parts/sbom").write_bytes(bill())
    files["sbom"] = site / "parts/sbom"
    data = samples.manifest(files, "one").to_bytes()
    Store(site / "store").add_image(data, samples.KEY.sign(data), files)
    return site


def test_garbage_is_told_of_each() -> None:
    files = {
        name_of(parameter).partition("|")[0]
        for command in ALL.values()
        for parameter in command.params
        if isinstance(parameter.type, GivenFile | NamedFile) or (parameter.metavar or name_of(parameter)) in TEXTS
    }
    assert set(GARBAGE) == files


@pytest.mark.parametrize("words", GARBAGE.values(), ids=GARBAGE)
def test_garbage_ends_by_1(words: tuple[str, ...], made: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(made / "config"))
    for name in ("given", "given.sig", "given.json", "given.yaml"):
        (made / name).write_bytes(b"\x80\xff\x00\t: [garbage\n")
        (made / name).chmod(0o600)
    ran = run(*words)
    assert (ran.status, ran.out) == (1, "")
    assert "given" in ran.err
