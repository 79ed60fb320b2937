"""How the root image is mounted: by its format, and again where a kernel does not know an option."""

import pytest

from images.artifact.manifest import ContainerImage
from tests.tools.images.boot_stage import Stage
from tests.unit.images.samples import manifest, parts

pytestmark = pytest.mark.tools

MOUNT = 'mount() { echo "mount $*"; case "$*" in *"$REFUSED"*) return 1 ;; esac; }\n'


@pytest.mark.parametrize(
    ("image", "refused", "lines"),
    [
        ("squashfs", "nothing", ["mount -t squashfs -o ro,loop,threads=percpu F /lower"]),
        (
            "squashfs",
            "threads",
            ["mount -t squashfs -o ro,loop,threads=percpu F /lower", "mount -t squashfs -o ro,loop F /lower"],
        ),
        ("erofs", "nothing", ["mount -t erofs -o ro,loop F /lower"]),
    ],
)
def test_by_the_images_format(stage: Stage, image: str, refused: str, lines: list[str]) -> None:
    done = stage.sh(f"{MOUNT}mount_image && echo mounted", RUN="", FILE="F", FORMAT=image, REFUSED=refused)
    assert done.stdout.splitlines() == [*lines, "mounted"]


def test_a_kernel_without_the_format_is_named(stage: Stage) -> None:
    script = f'{MOUNT}mkdir() {{ :; }}\nmount_root || echo "$REASON"'
    done = stage.sh(script, RUN="", FILE="F", FORMAT="erofs", REFUSED="erofs")
    assert done.stdout.splitlines()[-1] == (
        "the kernel cannot mount the root image (are erofs, its compression and loop there?)"
    )


@pytest.mark.parametrize(
    ("joins", "lines"),
    [
        (True, ["OVERLAY=1931m of 16384 42 32"]),
        (False, ["OVERLAY=7891m of 16384 42 32"]),
    ],
)
def test_the_overlay_has_a_size_by_the_machines_memory(stage: Stage, joins: bool, lines: list[str]) -> None:
    """Of 16 GiB; of what joins a cluster the most is for Pods, else half of the rest is the overlay's."""
    made = manifest(parts(stage.folder, "x")).model_copy(
        update={
            "container_images": tuple(
                ContainerImage(name=f"localhost/web:{n}", digest=str(n) * 64, size=16 << 20) for n in (1, 2)
            )
        }
    )
    (stage.run_folder / "manifest.json").write_bytes(made.to_bytes())
    (stage.run_folder / "meminfo").write_text("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
    if joins:
        (stage.run_folder / "lower/usr/lib/netboot/node").mkdir(parents=True)
    done = stage.sh(
        'divide_memory; echo "OVERLAY=${OVERLAY}m of $(cat "$RUN/memory")"',
        SIZE=str((42 << 20) - 1),
        MEMINFO=str(stage.run_folder / "meminfo"),
    )
    assert done.stdout.splitlines() == lines
    (stage.run_folder / "upper").mkdir()
    script = f'{MOUNT}mkdir() {{ :; }}\nmount_root || echo "$REASON"'
    told = stage.sh(
        script, FILE="F", FORMAT="squashfs", REFUSED="nothing", SIZE="1", MEMINFO=str(stage.run_folder / "meminfo")
    )
    sized = [line for line in told.stdout.splitlines() if "tmpfs" in line]
    assert len(sized) == 1 and "size=" in sized[0] and "mode=0755" in sized[0]


def test_huge_pages_are_not_divided(stage: Stage) -> None:
    (stage.run_folder / "manifest.json").write_bytes(manifest(parts(stage.folder, "x")).to_bytes())
    meminfo = "MemTotal: 16777216 kB\nHugePages_Total: 5120\nHugepagesize: 2048 kB\nHugetlb: 10485760 kB\n"
    (stage.run_folder / "meminfo").write_text(meminfo)
    done = stage.sh('divide_memory; cat "$RUN/memory"', SIZE="1", MEMINFO=str(stage.run_folder / "meminfo"))
    assert done.stdout == "6144 1 0\n"


def test_there_is_room_for_the_image_its_digests_and_what_is_on_its_way(stage: Stage) -> None:
    script = 'awk() { echo 99999; }\nmount() { echo "$4"; }\nmake_space 8'
    done = stage.sh(script, SIZE=str(8192 << 20), COUNT="2048")
    assert done.stdout == "nosuid,nodev,mode=0700,size=8212m,mpol=interleave\n"
