"""Acts that no service is asked for, in the audit: who changed the site's files, what they were and what they are."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from images.artifact.keyring import KeyRing
from netboot.stores.audit import concerned
from tests.commands import Run
from tests.sites import add_image
from tests.sockets.api import Api

CVE = ("--reason", "CVE-2026-1234", "--force-nothing-boots")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api(tmp_path)
    monkeypatch.chdir(tmp_path / "site")
    monkeypatch.delenv("SUDO_USER", raising=False)
    return made


def newest(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/audit?limit=1").json["audit"][0]
    return found


def what(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("act", "facts", "before", "after", "reason"))


def test_who_revoked_an_image_and_who_took_it_back_is_written_down(api: Api, run: Run) -> None:
    image = add_image(api.config)
    assert run("image", "revoke", image, *CVE, "--dry-run").status == 0
    assert api.get("/v1/audit").json["audit"] == [], "nothing was done"
    assert run("image", "revoke", image, *CVE).err == ""
    revoked = newest(api)
    account = pwd.getpwuid(os.geteuid()).pw_name
    assert (revoked["who"], revoked["role"], revoked["result"]) == (f"{account}@host", "files", "done")
    after = {"revoked": image, "reason": "CVE-2026-1234", "at": revoked["after"]["at"]}
    assert what(revoked) == ("image-revoke", {"image": image, "signed": True}, None, after, "CVE-2026-1234")
    assert run("image", "unrevoke", image[:8]).status == 0
    assert what(newest(api)) == ("image-unrevoke", {"image": image, "signed": True}, after, None, "")
    told = run("audit", "--output", "json").json["audit"]
    assert [each["act"] for each in told] == ["image-unrevoke", "image-revoke"]
    assert f"reason CVE-2026-1234, revoked {image[:12]} " in run("audit").out


def test_what_is_revoked_and_signed_elsewhere_says_so_and_so_does_the_bundle(api: Api, run: Run) -> None:
    image, (key,) = add_image(api.config), api.config.keys.glob("*.key")
    key.rename(api.config.keys.parent / "elsewhere.key")
    assert run("image", "revoke", image, *CVE).status == 1
    assert newest(api)["facts"] == {"image": image, "signed": False}
    (api.config.keys.parent / "elsewhere.key").rename(key)
    assert run("config", "bundle").status == 0
    act, facts, before, after, _ = what(newest(api))
    assert (act, facts, before, after["images_revoked"]) == (
        "config-bundle",
        {"site": api.config.site},
        {"issued": "2023-11-14T22:13:20.000Z", "images_revoked": 0},
        1,
    )
    assert run("config", "bundle").out.startswith("nothing to do")
    again = newest(api)
    assert (again["before"], again["result"]) == (again["after"], "unchanged")


def test_keys_that_are_trusted_no_more_and_again_are_written_down(api: Api, run: Run) -> None:
    (old,) = [info.id for info in KeyRing(api.config.keys).infos()]
    new = run("key", "rotate", "--output", "json").json["id"]
    assert what(newest(api)) == (
        "key-rotate",
        {"key": new},
        {"key": old, "state": "signs"},
        {"key": new, "state": "signs"},
        "",
    )
    assert run("key", "retire", old, "--force", "--dry-run").status == 0
    assert newest(api)["act"] == "key-rotate"
    assert run("key", "retire", old, "--force").status == 0
    trusted, retired = {"key": old, "state": "trusted"}, {"key": old, "state": "retired"}
    assert what(newest(api)) == ("key-retire", {"key": old, "ended": [], "bundle": True}, trusted, retired, "")
    assert run("key", "restore", old).status == 0
    assert what(newest(api)) == ("key-restore", {"key": old}, retired, trusted, "")
    assert run("key", "create", "--keys", "../others").status == 0
    assert newest(api)["act"] == "key-restore", "of no key of this site"
    assert run("key", "proofs", "rotate", "--output", "json").json["id"] == newest(api)["facts"]["key"]


def test_images_that_are_removed_are_written_down(api: Api, run: Run) -> None:
    one, two = add_image(api.config, name="one"), add_image(api.config, name="two", salt="2")
    assert run("image", "rm", one).status == 0
    assert what(newest(api)) == ("image-rm", {"image": one}, {"image": one, "name": "one"}, None, "")
    assert run("image", "gc", "--grace", "0", "--dry-run").status == 0
    assert newest(api)["act"] == "image-rm"
    assert run("image", "gc", "--grace", "0").status == 0
    assert run("image", "gc", "--grace", "0").out == "nothing to remove\n"
    assert [each["act"] for each in api.get("/v1/audit").json["audit"]] == ["image-gc", "image-rm"]
    assert what(newest(api)) == ("image-gc", {}, {"images": [two]}, None, "")


def test_what_cannot_be_written_down_is_done_and_said(api: Api, run: Run) -> None:
    images = [add_image(api.config, name=f"image-{number}", salt=str(number)) for number in range(3)]
    audit = api.config.data / "audit.db"
    audit.write_bytes(b"")
    damaged = run("image", "rm", images[0])
    assert (damaged.status, damaged.err.startswith("it is done, and in no audit: ")) == (0, True)
    audit.unlink()
    assert run("image", "rm", images[1]).err == "", "no service has been here yet"
    assert not audit.exists()
    (api.config.data.parent / "netboot.yaml").write_text("site: [\n")
    faulty = run("image", "rm", images[2], "--store", "store")
    assert (faulty.status, faulty.err.startswith("it is done, and in no audit: ")) == (0, True)


def test_what_init_adds_to_a_site_is_written_down(api: Api, run: Run) -> None:
    """New keys, and the bundle that they sign."""
    for path in api.config.keys.iterdir():
        path.unlink()
    assert run("init", ".", "--force", "--url", "http://192.0.2.1:8080").status == 0
    act, facts, before, after, _ = what(newest(api))
    (key,) = [info.id for info in KeyRing(api.config.keys).infos()]
    assert (act, {f"keys/{key}.key", f"keys/{key}.pub", "keys/active"} <= set(facts["wrote"])) == ("init", True)
    assert before["bundle"]["issued"] < after["bundle"]["issued"]
    assert run("init", ".", "--force", "--url", "http://192.0.2.1:8080").status == 0
    assert newest(api)["result"] == "unchanged"


def test_the_list_says_what_each_act_was_on(api: Api, run: Run) -> None:
    image = add_image(api.config)
    assert api.put("/v1/channels/stable", {"image": image}).status_code == 200
    for kind in ("racks", "classes"):
        path, headers = f"/v1/inventory/{kind}/r77", api.authorised | {"If-None-Match": "*"}
        assert api.client.put(path, json={"declared": {"name": "r77"}}, headers=headers).status_code == 409
    assert api.post("/v1/rollouts/7/pause", {}).json["code"] == "no-such-rollout"
    header, *rows = run("audit").out.splitlines()
    assert header.split() == ["at", "who", "act", "what", "before", "after", "reason", "result"]
    on = ("rollout 7", "classes/r77", "racks/r77", "channel stable")
    assert [each for each, row in zip(on, rows, strict=True) if f"  {each}  " not in row] == []
    assert [concerned(each) for each in ({"machines": 3}, {"issuer": "id", "left": "x"})] == ["machines 3", ""]
    names = [f"gpu-{number:03}" for number in range(400)]
    assert (len(concerned({"machines": names})), concerned({"ek": "a", "issuer": "https://id", "left": "x"})) == (
        100,
        "",
    )
