"""`/readyz`, metrics and `doctor` where machines of the inventory could not boot."""

from netboot.status.fetcher import FetcherStatus
from netboot.stores import bootkey
from tests.sites import add_image
from tests.sockets.api import NOW, SUPERVISOR, UP, Api


def test_what_is_not_set_yet_is_said_and_what_nobody_can_boot_is_no_readiness(api: Api) -> None:
    said = api.get("/readyz", None)
    assert (said.status_code, said.json["ready"], said.json["degraded"]) == (200, True, True)
    unset = "channel stable has no image yet: run `netboot channel set stable <image>`"
    assert said.json["details"]["machines"] == {
        "ok": False,
        "message": f"2 of 2 machines cannot boot (gpu-001, gpu-002); gpu-001: {unset}",
        "remedy": "set an image: `netboot channel set CHANNEL IMAGE`",
        "cannot_boot": 2,
    }
    metrics = api.get("/metrics", None).text
    assert 'netboot_detail_ok{detail="machines"} 0.0' in metrics
    assert "netboot_ready 1.0" in metrics

    digest = add_image(api.config)
    api.store.set_channel("stable", digest)
    api.publisher.step()
    said = api.get("/readyz", None)
    assert said.json["details"]["machines"] == {"ok": True, "message": "all 2 can boot", "cannot_boot": 0}
    assert (said.status_code, said.json["degraded"]) == (200, False)

    api.store.blob_path(api.store.manifest(digest).artifacts.initrd.sha256).unlink()
    api.publisher.step()
    said = api.get("/readyz", None)
    assert (said.status_code, said.json["ready"], said.json["details"]["machines"]["cannot_boot"]) == (503, False, 2)
    assert "netboot_ready 0.0" in api.get("/metrics", None).text
    fetching = SUPERVISOR.model_copy(update={"processes": {"boot-0": UP, "fetcher": UP}})
    api.say(supervisor=fetching)
    assert api.get("/readyz", None).json["ready"] is True, "it may be on its way"
    nothing = FetcherStatus(at_ms=NOW, ok=True, message="", images={}, transfer=None, fetched=0, bytes=0, failed=0)
    for images, ready in (({digest: "it is not here yet"}, True), ({}, False)):
        api.say(supervisor=fetching, fetcher=nothing.model_copy(update={"images": images}))
        assert api.get("/readyz", None).json["ready"] is ready, "nor is what nobody fetches"


def test_a_configuration_that_was_changed_since_the_start_is_said_with_its_cure(api: Api) -> None:
    assert api.get("/readyz", None).json["details"]["configuration"] == {"ok": True, "message": "in force"}
    words = "netboot.yaml was changed since the service took it: `netboot config reload` takes origins"
    api.say(supervisor=SUPERVISOR.model_copy(update={"changed": words}))
    said, cure = (
        api.get("/readyz", None).json,
        "`netboot config reload`, and what that does not take: restart the service",
    )
    assert said["details"]["configuration"] == {"ok": False, "message": words, "remedy": cure}
    assert (said["ready"], said["degraded"]) == (True, True)
    assert 'netboot_detail_ok{detail="configuration"} 0.0' in api.get("/metrics", None).text


def test_whose_service_it_is_is_said_and_no_key_is_made_for_who_asks(api: Api) -> None:
    """Anybody may ask, and boot servers go by whatever key is there."""
    path = api.config.data / "boot-id.key"
    assert (api.get("/readyz").json["site"], path.exists()) == ("", False)
    mark = bootkey.mark_of(bootkey.load_or_create(path))
    assert [api.get("/readyz").json["site"] for _ in range(2)] == [mark, mark]
    path.write_bytes(b"short")
    assert api.get("/readyz").json["site"] == ""
