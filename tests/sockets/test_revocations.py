"""`netboot image revoke` against the management API: who would not boot, what takes its place, who refuses."""

from pathlib import Path

import pytest

from images.store.store import Store
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from tests.commands import Ran, Run
from tests.records import event, script
from tests.sites import INVENTORY, add_image
from tests.sockets.api import Api

CVE = ("--reason", "CVE-2026-1234")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api(tmp_path, inventory=INVENTORY + "  - {name: spare}\n")
    monkeypatch.chdir(tmp_path / "site")
    return made


def pointed(api: Api, channel: str) -> str:
    state = Store(api.config.store).channel(channel)
    assert state is not None
    return state.image


def test_machines_that_would_not_boot_are_named_and_another_image_takes_its_place(api: Api, run: Run) -> None:
    bad, good = add_image(api.config, name="bad"), add_image(api.config, name="good", salt="2")
    for channel in ("stable", "spare"):
        api.store.set_channel(channel, bad)
    api.publisher.step()
    booted = script("gpu-002", 1).model_copy(update={"image": bad})
    api.states.take(Batch("boot-0.db", 1, 2, [booted, event("gpu-002", 1, Phase.BOOTED)]))
    short = bad[:12]
    said = (
        f"image {short} is what 2 machines boot next: gpu-001, gpu-002\n"
        "channel stable points to it\n"
        "channel spare points to it\n"
        "1 machine booted it, and may run it until rebooted: gpu-002\n"
    )
    nothing = "these machines would not boot, so nothing was changed\n"
    remedy = "Remedy: say what they are to boot with --replace-with IMAGE, or --force-nothing-boots\n"
    tried = Ran(4, f"{said}nothing was changed\n", f"Error: {nothing}{remedy}")
    assert run("image", "revoke", "bad", *CVE, "--dry-run") == tried
    assert run("image", "revoke", "bad", *CVE, "--dry-run", "--force-nothing-boots") == Ran(0, tried.out, "")
    would = f"channel stable would be image {good[:12]}\nchannel spare would be image {good[:12]}\n"
    assert run("image", "revoke", "bad", *CVE, "--dry-run", "--replace-with", "good").out == (
        f"{said}{would}nothing was changed\n"
    )
    assert run("image", "revoke", "bad", *CVE) == Ran(
        4,
        "",
        f"Error: {said}{nothing}{remedy}",
    )
    assert run("image", "revocations").out == "no image is revoked\n"
    assert run("image", "revoke", "bad", *CVE, "--replace-with", bad).err == (
        f"Error: image {short} is revoked, or is to be: choose another\n"
    )
    assert run("image", "revoke", "bad", *CVE, "--replace-with", "good") == Ran(
        0,
        f"image {short} is revoked: the site bundle says so, signed now\n"
        f"channel stable is image {good[:12]} now, for 2 machines\n"
        f"channel spare is image {good[:12]} now, for 0 machines\n"
        "1 machine booted it, and may run it until rebooted: gpu-002\n",
        "",
    )
    assert (pointed(api, "stable"), pointed(api, "spare")) == (good, good)
    assert api.get("/v1/channels/stable").json["in_force"] == bad  # no longer than until the publisher has looked
    refused = f"Error: image {short} cannot be used: it is revoked at this site: `netboot image revocations` says why\n"
    remedy = "Remedy: see `netboot image revocations`\n"
    for _ in range(2):  # at once, by the bundle, and by the snapshot
        assert run("channel", "set", "stable", "bad", "--force") == Ran(4, "", f"{refused}{remedy}")
        started = run("rollout", "start", "stable", "bad", "--on-next-boot")
        assert (started.status, started.err) == (4, f"{refused}{remedy}")
        api.publisher.step()
    assert api.get("/v1/channels/stable").json["in_force"] == good
    assert run("image", "unrevoke", short).status == 0
    assert run("channel", "set", "stable", "bad").status == 0


def test_machines_of_a_channel_that_is_forced_to_wait_are_told_why(api: Api, run: Run) -> None:
    bad = add_image(api.config, name="bad")
    api.store.set_channel("stable", bad)
    api.publisher.step()
    assert run("image", "revoke", "bad", *CVE, "--force-nothing-boots").status == 0
    assert api.publisher.step()
    why = "it is revoked at this site: `netboot image revocations` says why"
    decision = api.get("/v1/machines/gpu-001/explain").json["decision"]
    assert (decision["outcome"], decision["reason"]) == ("unavailable", "image-unusable")
    assert decision["because"][-1] == f"the image of channel stable cannot be used: {why}"
    assert api.get("/v1/channels/stable").json["unusable"] == why
    checked = run("config", "check")
    assert checked.status == 1
    assert f"channel stable is image {bad[:12]}, which is revoked: `netboot channel set stable IMAGE`" in checked.err
    add_image(api.config, name="good", salt="2")  # the same command again, with what was forgotten
    again = run("image", "revoke", "bad", *CVE, "--replace-with", "good")
    assert (again.status, "channel stable is image" in again.out) == (0, True)
    assert run("config", "check").status == 0


def test_an_image_that_the_inventory_pins_is_taken_out_of_it_first(api: Api, run: Run) -> None:
    bad = add_image(api.config, name="bad")
    add_image(api.config, name="good", salt="2")
    file = api.config.inventory / "site.yaml"
    file.write_text(INVENTORY.replace("{name: stable,", f"{{name: stable, image: {bad},"))
    api.publisher.step(now=True)
    assert run("image", "revoke", "bad", *CVE, "--replace-with", "good") == Ran(
        4, "", "Error: the inventory pins it to stable\nRemedy: edit it there, and then revoke it\n"
    )
    assert run("image", "revoke", "bad", *CVE, "--force-nothing-boots").status == 0
    pinned = f"channel stable is image {bad[:12]}, which is revoked: edit the inventory, which pins it"
    assert pinned in run("config", "check").err


def test_an_image_that_does_not_fit_moves_no_channel(api: Api, run: Run) -> None:
    bad = add_image(api.config, name="bad")
    add_image(api.config, name="arm", salt="2", architecture="arm64")
    api.store.set_channel("stable", bad)
    api.publisher.step()
    for dry in ((), ("--dry-run",)):
        ran = run("image", "revoke", "bad", *CVE, "--replace-with", "arm", *dry)
        assert (ran.status, pointed(api, "stable")) == (4, bad)
        assert ran.err.endswith("Error: channel stable stays as it is\nRemedy: choose another image, or say --force\n")
    assert run("image", "revocations").out == "no image is revoked\n"


def test_where_nobody_can_tell_whether_it_fits_nothing_is_moved(api: Api, run: Run) -> None:
    bad = add_image(api.config, name="bad")
    good = add_image(api.config, name="good", salt="2")
    api.store.set_channel("stable", bad)
    api.publisher.step()
    (api.config.inventory / "broken.yaml").write_text("machines: 1\n")  # the service goes by the one before
    assert run("image", "revoke", "bad", *CVE, "--replace-with", "good") == Ran(
        4,
        "",
        f"Error: whether machines of channel stable can boot {good[:12]} cannot be told: the site has faults, see "
        "`netboot config check`\nRemedy: see `netboot config check`; nothing was changed\n",
    )
    assert pointed(api, "stable") == bad


def test_what_is_no_digest_is_no_image(api: Api) -> None:
    answer = api.get("/v1/images/tiny/uses")
    assert (answer.status_code, answer.json["code"]) == (400, "bad-request")
    unknown = api.get(f"/v1/images/{'a' * 64}/uses").json
    assert unknown == {"image": "a" * 64, "channels": [], "boots": [], "runs": []}
