"""docs/second-day.md is typed, command by command, against a service that runs, and says what it shows."""

import os
import sys
from pathlib import Path

from netboot.cli import host_token
from tests.pages_run import run_page
from tests.processes import environment
from tests.sites import add_image, make_site

PAGE = Path(__file__).parents[2] / "docs" / "second-day.md"
INVENTORY = """\
racks:
- {name: r1}
- {name: r2}
channels:
- {name: stable}
- {name: next}
profiles:
- {name: default, channel: stable}
- {name: trial, channel: next}
machines:
- name: gpu-001          # the loud one
  rack: r1
  match: {macs: ["52:54:00:00:00:01"]}
  profile: default
- name: gpu-002
  rack: r1
  match: {macs: ["52:54:00:00:00:02"]}
  profile: default
- name: gpu-003
  rack: r1
  match: {macs: ["52:54:00:00:00:03"]}
  profile: default
"""


def test_what_the_page_says_is_so(tmp_path: Path) -> None:
    site = tmp_path / "site"
    config = make_site(site, workers=1, inventory=INVENTORY)
    for name in ("debian-12-node", "ubuntu-24.04-node"):
        add_image(config, name=name, salt=name)
    host_token.renew(config, host_token.TTL_MS)  # a site that `netboot init` made has one
    command = tmp_path / "bin" / "netboot"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m netboot.cli.main "$@"\n')
    command.chmod(0o755)
    variables = {**environment(), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    run_page(PAGE, site, variables, {"/srv/netboot/": f"{site}/"}, seconds=300)
