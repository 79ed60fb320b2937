"""What `channel set`, `config check` and `doctor` say of images that do not fit the classes of a channel's machines."""

from pathlib import Path

import pytest

from tests.commands import Run
from tests.sites import INVENTORY, add_image
from tests.sockets.api import Api

CLASSES = """\
classes:
- {name: little, memory_gib: 0.5}
- {name: hgx, nics: [{model: ConnectX-7, count: 8, speed_gbps: 400}]}
- {name: dpu, architecture: arm64}
"""
LITTLE = (
    "channel stable, 2 machines of class little: tiny leaves 108 of 496 MiB for work, and a quarter is 124: "
    "image 17, system 263, overlay 108; choose a smaller image, or correct `memory_gib` of the class"
)
UNTOLD = (
    "channel stable, 1 machine of class hgx: which drivers tiny has cannot be told: it has no list of its files; "
    "build it again"
)
OTHER = (
    "channel stable, 1 machine of class dpu: arm64, and tiny is for amd64; "
    "give their profile a channel of their own architecture"
)
STAYS = "Error: channel stable stays as it is\nRemedy: choose another image, or say --force\n"


def site(first: str, second: str, third: str) -> str:
    text = INVENTORY
    for number, name in enumerate((first, second, third), start=1):
        text = text.replace(f'00:0{number}"]', f'00:0{number}"]', 1)
        old = {1: '00:01"]}', 2: "serial: S2}", 3: '00:03"]}'}[number]
        text = text.replace(old, f"{old}, class: {name}")
    return text + CLASSES


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api(tmp_path, inventory=site("little", "hgx", "little"))
    add_image(made.config)
    monkeypatch.chdir(tmp_path / "site")
    return made


def rewrite(api: Api, text: str) -> None:
    (api.config.inventory / "site.yaml").write_text(text)


def test_what_does_not_fit_is_refused_and_set_by_force(api: Api, run: Run) -> None:
    refused = run("channel", "set", "stable", "tiny")
    said = f"does not fit: {LITTLE}\nwarning: {UNTOLD}\n"
    assert (refused.status, refused.out, sorted(refused.err.splitlines())) == (
        4,
        "",
        sorted((said + STAYS).splitlines()),
    )
    assert api.store.channels() == {}
    forced = run("channel", "set", "stable", "tiny", "--force")
    assert (forced.status, sorted(forced.err.splitlines())) == (0, sorted(said.splitlines()))
    assert api.store.channels().keys() == {"stable"}


def test_programs_read_what_does_not_fit(run: Run) -> None:
    refused = run("channel", "set", "stable", "tiny", "--output", "json")
    misfits = {one["class_name"]: one for one in refused.json["misfits"]}
    assert (refused.status, set(misfits)) == (4, {"little", "hgx"})
    assert misfits["hgx"] == {
        "outcome": "warn",
        "channel": "stable",
        "machines": 1,
        "class_name": "hgx",
        "some": "gpu-002",
        "cause": "which drivers tiny has cannot be told: it has no list of its files",
        "remedy": "build it again",
    }
    forced = run("channel", "set", "stable", "tiny", "--force", "--output", "json")
    assert (forced.status, forced.json["name"], len(forced.json["misfits"])) == (0, "stable", 2)


def test_what_only_warns_is_set(api: Api, run: Run) -> None:
    rewrite(api, site("hgx", "hgx", "hgx"))
    done = run("channel", "set", "stable", "tiny")
    assert (done.status, done.err) == (0, f"warning: {UNTOLD.replace('1 machine ', '3 machines ')}\n")


def test_machines_of_another_architecture_by_the_files(api: Api, run: Run) -> None:
    rewrite(api, site("hgx", "dpu", "little").replace("memory_gib: 0.5", "memory_gib: 4"))
    done = run("channel", "set", "stable", "tiny")
    assert (done.status, f"does not fit: {OTHER}\n" in done.err) == (4, True)
    assert run("channel", "set", "stable", "tiny", "--force").status == 0


def test_the_service_itself_refuses_another_architecture(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=site("hgx", "dpu", "little"))
    add_image(api.config)
    again = api.put("/v1/channels/stable", {"image": "tiny"})
    assert (again.status_code, again.json["detail"]) == (422, OTHER)
    assert api.put("/v1/channels/stable", {"image": "tiny", "force": True}).status_code == 200


def test_without_the_site_nothing_is_judged_and_that_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("channel", "set", "stable", "tiny")
    words = "not judged whether the machines of stable can boot it: no configuration of the site is here (--config)"
    assert (done.status, done.err) == (0, f"{words}\n")


def test_what_is_not_here_the_service_speaks_of(api: Api, run: Run) -> None:
    done = run("channel", "set", "stable", "nothing")
    assert (done.status, "no image of the store has that name or digest" in done.err) == (3, True)


def test_the_site_s_check_and_the_doctor_say_it_of_channels_as_they_are(api: Api, run: Run) -> None:
    assert run("config", "check").status == 0
    api.store.set_channel("stable", api.store.digests()[0])
    checked = run("config", "check")
    place = f"{api.config.inventory / 'site.yaml'}:8"
    assert (checked.status, checked.out) == (1, "")
    loopback, ours, *rest = checked.err.splitlines()
    assert loopback == (
        f"warning: provisioning.url: {api.config.provisioning.url} leads a machine to itself; where machines are to "
        "come, give the address by which they reach this host"
    )
    assert "operator.token still opens everything" in ours, "as a site of before has it"
    assert rest == [f"warning: {UNTOLD}", f"{place}: {LITTLE}"]
    (fault,) = run("config", "check", "--output", "json").json["faults"]
    assert (fault["file"], fault["line"], fault["message"]) == (str(api.config.inventory / "site.yaml"), 8, LITTLE)
    said = run("doctor", "--quiet").out
    assert f"FAIL  site: site.yaml: {place}: {LITTLE}\n" in said
    assert f"WARN  images: fit: {UNTOLD}\n" in said
    rewrite(api, site("hgx", "hgx", "hgx"))
    assert run("config", "check").status == 0
