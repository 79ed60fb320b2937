"""How the root image is mounted: by its format, and again where a kernel does not know an option."""

import pytest

from tests.tools.images.boot_stage import Stage

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
