"""What goes wrong on the way: origins, images that must not be believed, a service that dies."""

import itertools
import json
import re
from pathlib import Path

import pytest

from images.artifact.signing import SigningKey
from lab.errors import LabError
from lab.servers import Misbehaving, misbehaving, nginx
from lab.site import CommandFailedError
from tests.boot.data_centre import (
    BOOT_SECONDS,
    LOG_SECONDS,
    BuiltImage,
    data_centre,
    entry,
    flip,
    hardware,
    replace,
    start_with_kernels_of_origins,
)

pytestmark = pytest.mark.boot
MIB = 1 << 20
CHUNK = 4 * MIB


def test_a_rack_of_an_origin_that_dies_one_that_lies_and_a_sound_one(built: BuiltImage, folder: Path) -> None:
    """The first origin cuts every answer after 3 MiB, the second sends a wrong byte in each chunk, nginx is sound.

    So the initrd comes from the first, but the kernel, which is larger, from the service; the root image from the
    rack together (and the service, if they are slow), its damaged chunks once more from the others.
    """
    mine, root = hardware(1), built.root["sha256"]
    dying = Misbehaving(built.site.store, root, die_after=3 * MIB)
    everywhere = tuple(range(4711, built.root["size"], CHUNK))
    lying = Misbehaving(built.site.store, root, corrupt=everywhere)
    with data_centre(folder, built, origins=True) as here:
        assert here.net is not None
        with (
            misbehaving(dying, here.net.host),
            misbehaving(lying, here.net.host),
            nginx(here.net, here.site.store) as sound,
        ):
            start_with_kernels_of_origins(here)
            rack = json.dumps([dying.url, lying.url, sound])
            here.declare(entry(mine, ", rack: r1"), racks=f"racks: [{{name: r1, origins: {rack}}}]\n")
            with here.switched_on(mine) as machine:
                verified = here.service.wait_for(mine.name, "ImageVerified", BOOT_SECONDS)
                others = "|".join(map(re.escape, (dying.url, sound, here.site.url)))
                again = rf", chunk \d+ again from ({others})"
                assert re.fullmatch(rf"{len(built.root['chunks'])} chunks({again})+", verified["detail"])
                machine.wait_for_console(f"netboot: left {re.escape(lying.url)}: sends damaged chunks", LOG_SECONDS)
                here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
        here.wait_for_trace(mine.name, fetched_elsewhere=("InitrdFetched",))
        assert here.latest(mine.name)["failures"] == []
        kernel, initrd = (f"/v1/blobs/{built.manifest['artifacts'][name]['sha256']}" for name in ("kernel", "initrd"))
        assert [path for path, _ in dying.requests if path in (kernel, initrd)] == [kernel, initrd]
        asked = (here.net.folder / "nginx-access.log").read_text().splitlines()
        assert {line.split('"')[2].split()[0] for line in asked if root in line} == {"206"}


def test_what_must_not_be_believed_does_not_boot_until_it_is_put_right(built: BuiltImage, folder: Path) -> None:
    """A manifest signed by a stranger; the image revoked in mid-boot; a flipped byte in its stored root; all is well.

    The service trusts the stranger, so that it is the machine itself that refuses: its initrd does not know the key.
    """
    mine, stranger, root = hardware(1), SigningKey.generate(), built.root["sha256"]
    with data_centre(folder, built) as here:
        signature = here.site.store / "images" / built.digest / "manifest.sig"
        blob, sound = here.site.store / "blobs" / root, signature.read_bytes()
        (here.site.folder / "keys" / f"{stranger.public.id}.pub").write_bytes(stranger.public.to_bytes())
        replace(signature, stranger.sign((signature.parent / "manifest.json").read_bytes()))
        here.declare(entry(mine))
        with here.switched_on(mine) as machine:
            refused = here.service.wait_for(mine.name, "Failed", BOOT_SECONDS)
            assert refused["detail"].startswith(
                f"ImageRefused: {here.site.url}/v1/images/{built.digest}/manifest.json is not signed by a key that "
                "this machine trusts;"
            )
            machine.wait_for_console(r"netboot: FAILED \(1 of 10\): ImageRefused", LOG_SECONDS)
            here.wait_for_trace(mine.name, "InitrdStarted")
            assert here.latest(mine.name)["state"] == "Failed"
            here.wait_for_console(refused["boot"], "netboot: FAILED (1 of 10): ImageRefused")

            here.site.netboot("image", "revoke", built.digest, "--reason", "CVE-2026-1234", "--force-nothing-boots")
            refused = here.service.wait_for(mine.name, "Failed", BOOT_SECONDS, "revoked")
            assert refused["detail"] == f"ImageRefused: image {built.digest} is revoked at this site"
            machine.wait_for_console(rf"netboot: FAILED \(\d of 10\): {refused['detail']}", LOG_SECONDS)
            with pytest.raises(CommandFailedError, match="cannot be used: it is revoked at this site"):
                here.site.netboot("explain", mine.name)

            flip(blob, 2 * CHUNK + 1)
            replace(signature, sound)
            here.site.netboot("image", "unrevoke", built.digest)
            with pytest.raises(CommandFailedError) as named:
                here.site.netboot("image", "verify", built.digest)
            assert re.search(r"(?m)^root +.*damaged in chunk 2 of ", str(named.value))
            refused = here.service.wait_for(mine.name, "Failed", BOOT_SECONDS, "damaged")
            assert refused["detail"] == (
                "ImageRefused: chunk 2 of the root image is damaged at every origin that sends it: "
                f"{here.site.url}: sends damaged chunks"
            )
            here.wait_for_trace(mine.name, "InitrdStarted")

            flip(blob, 2 * CHUNK + 1)
            assert "every byte" in here.site.netboot("image", "verify", built.digest)
            here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            here.wait_for_trace(mine.name)
            details = (one["detail"] for one in here.latest(mine.name)["failures"])
            assert len([detail for detail, _ in itertools.groupby(details)]) == 3
            assert here.latest(mine.name)["state"] == "Booted"


def test_a_service_that_is_killed_mid_boot_and_started_again_has_the_whole_trace(
    built: BuiltImage, folder: Path
) -> None:
    """SIGKILL when the initrd starts. /boot.ipxe is named by a proxy DHCP beside an operator's own server."""
    mine = hardware(1)
    with data_centre(folder, built, mode="proxy") as here:
        here.declare(entry(mine))
        with here.switched_on(mine) as machine:
            before = here.service.wait_for(mine.name, "InitrdStarted", BOOT_SECONDS)
            here.service.kill()
            with pytest.raises(LabError):
                here.site.netboot("boot", "list")
            machine.wait_for_console("netboot: (cannot fetch|left) ", BOOT_SECONDS)
            here.service.start()
            after = here.service.wait_for(mine.name, "Booted", BOOT_SECONDS)
            assert after["boot"] == before["boot"]
            here.wait_for_trace(mine.name)
            assert [one for one in here.latest(mine.name)["failures"] if "ImageRefused" in one["detail"]] == []
