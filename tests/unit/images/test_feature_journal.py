"""Where the journal goes: how systemd-journal-upload is started, by what the signed bundle says."""

import subprocess
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle

SCRIPT = Path(__file__).parents[3] / "images/recipes/features/journal-upload/usr/lib/netboot/journal.sh"
PEMS = ("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nMQ==\n")


def started(folder: Path, **said: object) -> tuple[int, str, list[str]]:
    """Exit status, what it said, and the arguments of the program that it became (none: it did not)."""
    url = "http://192.0.2.1"
    facts = {"site": "a", "issued": 1, "minimum_epoch": 0, "origins": (url,), "report": url, "join_authorities": ("X",)}
    for name in ("run/netboot", "run/netboot-journal"):
        (folder / name).mkdir(parents=True)
    (folder / "run/netboot/site.json").write_bytes(SiteBundle.model_validate(facts | said).to_bytes())
    upload = folder / "upload"
    upload.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{folder}/argv\n')
    upload.chmod(0o755)
    env = {"NETBOOT_RUN": str(folder / "run"), "NETBOOT_UPLOAD": str(upload), "STATE_DIRECTORY": "/var/lib/x"}
    done = subprocess.run(["sh", str(SCRIPT)], env=env, capture_output=True, text=True, check=False)
    argv = (folder / "argv").read_text().splitlines() if (folder / "argv").exists() else []
    return done.returncode, done.stdout + done.stderr, argv


def test_over_tls_by_the_site_s_authorities_alone(tmp_path: Path) -> None:
    status, said, argv = started(tmp_path, journal_url="https://logs.example:19532", journal_authorities=PEMS)
    authorities = tmp_path / "run/netboot-journal/authorities.pem"
    assert (status, said) == (0, "the journal goes to https://logs.example:19532\n")
    assert argv == [
        "--url=https://logs.example:19532",
        "--key=-",
        "--cert=-",
        "--save-state=/var/lib/x/state",
        f"--trust={authorities}",
    ]
    assert [line for line in authorities.read_text().split("\n") if line] == "".join(PEMS).splitlines()


def test_over_tls_without_an_authority_nobody_is_believed(tmp_path: Path) -> None:
    """The configuration allows no such bundle; the program's default would be a file that is not there."""
    _, _, argv = started(tmp_path, journal_url="https://logs.example")
    assert argv[-1] == f"--trust={tmp_path}/run/netboot-journal/authorities.pem"
    assert (tmp_path / "run/netboot-journal/authorities.pem").read_text() == ""


def test_in_plain_text_where_the_site_says_so(tmp_path: Path) -> None:
    _, _, argv = started(tmp_path, journal_url="http://192.0.2.9:19532")
    assert argv == ["--url=http://192.0.2.9:19532", "--key=-", "--cert=-", "--save-state=/var/lib/x/state"]


def test_a_site_that_names_nobody_has_no_upload_and_no_failed_unit(tmp_path: Path) -> None:
    said = "the site names nobody who takes the journal; it stays here, in memory\n"
    assert started(tmp_path) == (0, said, [])


@pytest.mark.parametrize("line", ["Restart=on-failure", "RestartSec=30", "StartLimitIntervalSec=0", "MemoryMax=128M"])
def test_whoever_takes_journals_may_be_away(line: str) -> None:
    unit = SCRIPT.parents[1] / "systemd/system/netboot-journal.service"
    assert line in unit.read_text().splitlines()
