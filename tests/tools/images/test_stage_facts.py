"""What the boot stage leaves for the root: the boot, the verified site bundle, the nonce of a boot window."""

import json

import pytest

from images.artifact.bundle import SiteBundle
from images.node.agent.settings import read_settings, sealed_nonce
from tests.tools.images.boot_stage import Stage

pytestmark = pytest.mark.tools

BUNDLE = SiteBundle(
    site="lab",
    issued=7,
    minimum_epoch=0,
    origins=("http://192.0.2.1:8080",),
    report="http://192.0.2.1:8080",
    join_url="https://192.0.2.1:8443",
    join_authorities=("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",),
)


def test_the_agent_reads_what_the_stage_leaves(stage: Stage) -> None:
    (stage.run_folder / "bundle.json").write_bytes(BUNDLE.to_bytes())
    (stage.folder / "nonce").write_text("c2VhbGVk\n")
    done = stage.sh("leave_facts", REPORT="http://192.0.2.1:8080", SEALED_NONCE=str(stage.folder / "nonce"))
    assert done.returncode == 0, done.stderr
    (stage.folder / "run/netboot").symlink_to(".")
    known = read_settings(stage.folder)
    assert (known.boot, known.report) == ("01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f", "http://192.0.2.1:8080")
    assert (known.mac, known.name) == ("52:54:00:12:34:56", "node-1")
    assert (known.join_url, known.issued) == ("https://192.0.2.1:8443", 7)
    assert known.authorities == BUNDLE.join_authorities[0]
    assert sealed_nonce(stage.folder) == "c2VhbGVk"
    assert (stage.run_folder / "nonce").stat().st_mode & 0o777 == 0o400


def test_without_a_boot_window_there_is_no_nonce(stage: Stage) -> None:
    (stage.run_folder / "bundle.json").write_bytes(BUNDLE.to_bytes())
    assert stage.sh("leave_facts", REPORT="http://a", SEALED_NONCE=str(stage.folder / "nonce")).returncode == 0
    assert not (stage.run_folder / "nonce").exists()
    assert json.loads((stage.run_folder / "site.json").read_bytes())["site"] == "lab"
