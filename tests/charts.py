"""The Helm chart as helm makes it, for tests."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.chart import CHART, rendered

ALL, ALONE, THREE = (CHART / f"ci/{name}-values.yaml" for name in ("load-balancer", "host-network", "three-replicas"))
Object = dict[str, Any]


def objects(*more: str, values: Path = ALL) -> list[Object]:
    """All that is made of these values."""
    return [each for each in yaml.safe_load_all(rendered(values, *more)) if each]


def one(kind: str, *more: str, values: Path = ALL) -> Object:
    """The only one of its kind."""
    (found,) = (each for each in objects(*more, values=values) if each["kind"] == kind)
    return found


def refused(*more: str, values: Path = ALL) -> str:
    """What helm says."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered(values, *more)
    return str(caught.value.stderr)


def failed(why: str) -> str:
    """The whole of what helm says where values do not go together."""
    return (
        f"Error: execution error at (netboot/templates/config.yaml:1:4): {why}\n\n"
        "Use --debug flag to render out invalid YAML\n"
    )
