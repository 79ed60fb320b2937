"""The Helm chart: what is made of it and kept in the tree, and the archive that is handed on.

`python -m lab.chart write` renders `deploy/helm/rendered/` of the chart's example values, and the table of docs/helm.md
of its schema; `python -m lab.chart package FOLDER`, behind `make chart`, makes an archive.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lab.kube.binaries import VERSION
from lab.kube.programs import find
from lab.work import CACHE, ROOT

CHART = ROOT / "deploy/helm/netboot"
RENDERED = ROOT / "deploy/helm/rendered"
PAGE = ROOT / "docs/helm.md"
BEGIN, END = "<!-- values: made by `python -m lab.chart write` -->\n", "<!-- values end -->\n"
_TOLD = ("resources",)
"""Values whose default is a document, which values.yaml has."""


def examples() -> list[Path]:
    """Values of whole sites."""
    return sorted((CHART / "ci").glob("*-values.yaml"))


def rendered(values: Path, *more: str) -> str:
    """Manifests of a release `netboot` in the namespace `netboot`.

    Raises:
        subprocess.CalledProcessError: helm refuses; `stderr` says why.
    """
    return helm("template", "netboot", str(CHART), "-n", "netboot", "--kube-version", VERSION, "-f", str(values), *more)


def helm(*arguments: str) -> str:
    """What it prints.

    Raises:
        subprocess.CalledProcessError: as `rendered`. NoProgramError.
    """
    argv = [str(find("helm", CACHE)), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def table() -> str:
    """Of all values: which, their defaults, what they are for; from the schema's descriptions."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    lines = ["| value | default | |", "|---|---|---|"]
    lines += [f"| `{path}` | {default} | {text} |" for path, default, text in _rows(schema, defaults, "")]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """A page with the table of now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def _rows(schema: dict[str, Any], defaults: Any, within: str) -> Iterator[tuple[str, str, str]]:
    for name, value in schema["properties"].items():
        path, default = f"{within}{name}", (defaults or {}).get(name)
        if "properties" in value:
            yield from _rows(value, default, f"{path}.")
        else:
            shown = "values.yaml" if name in _TOLD else f"`{json.dumps(default)}`" if default not in (None, "") else ""
            yield path, shown, value["description"]


def main(what: str, *arguments: str) -> None:
    """Write what is in the tree, or an archive."""
    if what == "package":
        print(helm("package", str(CHART), "--destination", *arguments).strip())
        return
    RENDERED.mkdir(exist_ok=True)
    for values in examples():
        (RENDERED / f"{values.stem.removesuffix('-values')}.yaml").write_text(rendered(values), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
