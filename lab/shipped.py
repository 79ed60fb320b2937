"""What is known of each shipped recipe by having built it: records, and the table of the page that shows them.

    python -m lab.shipped STORE…     record the images of stores (docs/shipped-recipes.json), and write the page anew
    python -m lab.shipped STORE --only NAME --heir "kernel 6.8.0-149 by its name"
                                     one image, of an heir of the recipe's name: with what the heir has otherwise
    python -m lab.shipped STORE --only NAME --booted 2026-11-29
                                     and it was booted by hand, on that day

A record holds only for what its recipe asked for then: a test compares them, so a recipe that asks for other packages
has to be built and recorded again. One without a record that no test boots is NOT BUILT.
"""

import argparse
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from images.artifact.diff import read_packages
from images.build.gates import budget
from images.recipe import inherit
from images.recipe.recipe import Recipe
from images.store.store import Image, Store
from images.values.strict import Strict
from lab import memory
from lab.work import ROOT

RECORDS = ROOT / "docs" / "shipped-recipes.json"
PAGE = ROOT / "docs" / "shipped-recipes.md"
BEGIN, END = "<!-- made by `python -m lab.shipped` -->\n", "<!-- end -->\n"
BOOTED = {
    "debian-12-minimal": "QEMU, each run: `tests/boot/test_boots.py`",
    "debian-12-node": "as `debian-12-node-demo`, which has a CNI more",
    "debian-12-node-demo": "QEMU, into a cluster, each run: `tests/boot/test_node.py`",
    "debian-12-cpu": "QEMU with NVMe disks, each run: `tests/boot/test_servers.py`",
    "debian-12-gpu": "QEMU without a GPU, each run: `tests/boot/test_servers.py`",
    "debian-12-arm64": "QEMU arm64, each run: `tests/boot/test_arm64.py`",
    "ubuntu-24.04-cpu": "QEMU with NVMe disks, by hand",
    "ubuntu-24.04-gpu": "QEMU without a GPU, by hand",
    "ubuntu-24.04-node-demo": "QEMU, into a cluster, by hand",
}
"""Where a recipe is booted, and built for it; one that is not here was not. By hand: what was seen is on the page, and
of which build it is in the record."""
BY_HAND = "by hand"
NOT_BUILT, WITHOUT_RECORD = "**NOT BUILT**", "by the tests, in each run; no record"


class Boot(Strict):
    """A boot by hand. `root`: SHA-256 of the root image that was booted; "": nobody wrote it down."""

    day: str
    root: str = ""


class Record(Strict):
    """One build. Sizes in bytes as a machine fetches them, of container images as containerd keeps them; `packages`:
    those that were asked for → version; `heir`: what is otherwise than in the shipped recipe, empty where nothing is
    but the lab's kubelet and container images."""

    built: str
    profile: str
    kernel: str
    kernel_bytes: int
    initrd_bytes: int
    root_bytes: int
    containers_bytes: int
    installed: int
    packages: dict[str, str]
    heir: str = ""
    root: str = ""
    """SHA-256 of its root image; "": of before that was recorded."""
    boot: Boot | None = None

    @property
    def day(self) -> str:
        """When it was built, and whether as the recipe is, as the page has it."""
        return f"**NOT BUILT** as it ships; an heir: {self.built}" if self.heir else self.built

    @property
    def mib(self) -> str:
        """Together, as the page has it."""
        return f"{(self.kernel_bytes + self.initrd_bytes + self.root_bytes) / 2**20:.1f}"


def image(name: str, found: Record) -> budget.Image:
    """What decides about its memory."""
    return budget.Image(name, found.root_bytes, found.containers_bytes, inherit.load(inherit.find(name)).join)


def asked(recipe: Recipe, kernel: str, heir: str = "") -> set[str]:
    """The packages that a recipe asks for where its kernel is this one; of an heir the kernel's own package counts, for
    it may have named that in place of the one that brings the newest."""
    names = {name.partition("=")[0].replace("{kernel}", kernel) for name in recipe.installs()}
    return names - {recipe.kernel.package} | {f"linux-image-{kernel}"} if heir else names


def booted(name: str, found: Record | None) -> str:
    """Where a recipe was booted, as the page has it. By hand counts for the build that is recorded, and no other."""
    how = BOOTED.get(name, "no")
    if not how.endswith(BY_HAND):
        return how
    if found is None or found.boot is None:
        return "no, not this build"
    if found.boot.root and found.boot.root == found.root:
        return f"{how}, {found.boot.day}"
    other = "an earlier build" if found.boot.day < found.built else "no digest recorded"
    return f"{how}, {found.boot.day}: {other}"


def read() -> dict[str, Record]:
    """The records by recipe; those of which nothing is recorded are not in it."""
    return {name: Record.model_validate(value) for name, value in json.loads(RECORDS.read_text()).items()}


def record(store: Store, stored: Image, profile: str, on: str, heir: str = "", day: str = "") -> Record:
    """What an image says of its recipe; SystemExit where the recipe asks for more by now. `day`: it was booted then."""
    parts = stored.manifest.artifacts
    installed = read_packages(store.blob_path(parts.packages.sha256).read_bytes())
    versions = {name.partition(":")[0]: version for name, version in installed.items()}
    recipe = inherit.load(inherit.find(stored.manifest.name))
    names = asked(recipe, stored.manifest.kernel_version, heir)
    if lacking := sorted(names - versions.keys()):
        raise SystemExit(f"{stored.manifest.name} asks for {', '.join(lacking)} since it was built: build it again")
    return Record(
        built=on,
        profile=profile,
        kernel=stored.manifest.kernel_version,
        kernel_bytes=parts.kernel.size,
        initrd_bytes=parts.initrd.size,
        root_bytes=parts.root.size,
        containers_bytes=sum(one.size for one in stored.manifest.container_images),
        installed=len(installed),
        packages={name: versions[name] for name in sorted(names)},
        heir=heir,
        root=parts.root.sha256,
        boot=Boot(day=day, root=parts.root.sha256) if day else None,
    )


def table(records: dict[str, Record]) -> str:
    """The part of the page that is made: a row for each shipped recipe, what becomes of memory, and each's packages."""
    lines = [
        "| | built | profile | kernel | packages | MiB | budget | RAM | RAM declared | booted |",
        f"|{'---|' * 10}",
    ]
    for name in inherit.shipped():
        recipe, found = inherit.load(inherit.find(name)), records.get(name)
        facts = [found.day, found.profile, found.kernel, str(found.installed), found.mib] if found else []
        cells = facts or [WITHOUT_RECORD if name in BOOTED else NOT_BUILT, "", "", "", ""]
        most = budget.Image(name, recipe.budget_mib * budget.MIB, 0, recipe.join)
        ram = f"{memory.least_mib(image(name, found)):,}" if found else f"≤ {memory.least_mib(most):,}"
        cells += [str(recipe.budget_mib), ram, f"{recipe.machine_memory_mib or 0:,}", booted(name, found)]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    divided = memory.rows([image(name, found) for name, found in sorted(records.items())])
    return "\n".join([*lines, "", *divided, "", *_packages(records)]) + "\n"


def _packages(records: dict[str, Record]) -> Iterator[str]:
    for name, found in sorted(records.items()):
        listed = ", ".join(f"{package} {version}" for package, version in found.packages.items())
        heir = f" (an heir: {found.heir})" if found.heir else ""
        yield f"- `{name}`{heir}: {listed}"


def page(text: str, records: dict[str, Record]) -> str:
    """The page with its made part anew."""
    made = BEGIN + table(records) + END
    return re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: made, text, flags=re.DOTALL)


def main() -> None:
    """Take records, write records and page."""
    parser = argparse.ArgumentParser(prog="python -m lab.shipped", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path, nargs="*", help="artifact stores with images of shipped recipes")
    parser.add_argument("--on", default=f"{datetime.now(UTC):%Y-%m-%d}", help="day of the build (default: today)")
    parser.add_argument("--profile", help="profile of the build (default: the recipe's own)")
    parser.add_argument("--only", help="a recipe whose image is recorded, and no other")
    parser.add_argument("--heir", default="", help="what it has otherwise, where an heir of the recipe was built")
    parser.add_argument("--booted", default="", help="the day on which the image was booted by hand")
    options = parser.parse_args()
    if (options.heir or options.booted) and not options.only:
        parser.error("--heir and --booted are about one image: name its recipe with --only")
    records = read() if RECORDS.exists() else {}
    for place in options.store:
        store = Store(place)
        newest = {one.manifest.name: one for one in reversed(store.images())}
        for name in newest.keys() & ({options.only} if options.only else set(inherit.shipped())):
            profile = options.profile or inherit.load(inherit.find(name)).profile
            records[name] = record(store, newest[name], profile, options.on, options.heir, options.booted)
    values = {name: found.model_dump(exclude_defaults=True) for name, found in records.items()}
    RECORDS.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(PAGE.read_text(), records))


if __name__ == "__main__":
    main()
