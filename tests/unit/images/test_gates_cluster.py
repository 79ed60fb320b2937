"""The kubelet against the cluster and against containerd, and where their versions come from."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.gates.checks import pairs, skew
from images.build.gates.programs import version_of
from images.values.skew import minor
from tests.unit.images.gate_facts import facts, recipe_facts, said

REMEDY = "\n  take the kubelet from the cluster's own minor version, or correct 'kubernetes' in the recipe"


def kubelet(folder: Path, version: str | None, cluster: str | None) -> list[str]:
    programs = {} if version is None else {"kubelet": version}
    return said(skew.GATE, facts(folder, programs=programs, recipe=recipe_facts(kubernetes=cluster)))


@pytest.mark.parametrize("version", ["1.31.0", "1.32.9", "1.33.0-1.1", "1.34.4", "1.34.0~rc.1-0", "v1.34.1"])
def test_kubelets_that_may_join(tmp_path: Path, version: str) -> None:
    assert kubelet(tmp_path, version, "1.34") == []


@pytest.mark.parametrize(
    ("version", "cluster", "cause"),
    [
        ("1.35.0", "1.34", "1.35.0, which is newer than a cluster of Kubernetes 1.34 (1.31 to 1.34 may join it)"),
        ("2.0.0", "1.34", "2.0.0, which is newer than a cluster of Kubernetes 1.34 (1.31 to 1.34 may join it)"),
        ("1.30.9", "1.34", "1.30.9, which is too old for a cluster of Kubernetes 1.34 (1.31 to 1.34 may join it)"),
        ("1.24.0", "1.27", "1.24.0, which is too old for a cluster of Kubernetes 1.27 (1.25 to 1.27 may join it)"),
    ],
)
def test_kubelets_that_may_not(tmp_path: Path, version: str, cluster: str, cause: str) -> None:
    assert kubelet(tmp_path, version, cluster) == [f"skew: the kubelet is {cause}{REMEDY}"]


def test_no_kubelet_or_none_that_says_its_version_or_no_cluster(tmp_path: Path) -> None:
    assert kubelet(tmp_path, "1.99.0", None) == []
    assert kubelet(tmp_path, None, None) == []
    assert kubelet(tmp_path, None, "1.34") == [
        (
            "skew: the recipe is for a cluster of Kubernetes 1.34, and the image has no kubelet\n"
            "  add the package kubelet, or take 'kubernetes' out of the recipe"
        )
    ]
    assert kubelet(tmp_path, "latest", "1.34") == [
        (
            "skew: nobody can tell what minor version of Kubernetes the kubelet 'latest' is\n"
            "  take a kubelet whose package or --version says it, like 1.34.4"
        )
    ]


@given(own=st.integers(0, 60), cluster=st.integers(0, 60))
def test_the_policy_in_numbers(tmp_path_factory: pytest.TempPathFactory, own: int, cluster: int) -> None:
    """https://kubernetes.io/releases/version-skew-policy/#kubelet"""
    found = kubelet(tmp_path_factory.getbasetemp(), f"1.{own}.3", f"1.{cluster}")
    behind = cluster - own
    assert (found == []) == (0 <= behind <= (3 if own >= 25 else 2))


@pytest.mark.parametrize(
    ("kubelet_", "containerd", "count"),
    [
        ("1.34.4", "1.6.20~ds1-1+deb12u1", 0),
        ("1.37.0", "1.7.28", 0),
        ("1.38.0", "1.7.28", 1),
        ("1.38.0", "2.0.0", 0),
        ("1.26.0", "1.5.9", 1),
        ("1.25.9", "1.5.9", 0),
        ("1.40.1", "1.5.9", 2),
        ("1.40.1", "unknown", 0),
    ],
)
def test_pairs_that_are_known_to_fail(tmp_path: Path, kubelet_: str, containerd: str, count: int) -> None:
    programs = {"kubelet": kubelet_, "containerd": containerd}
    assert len(said(pairs.GATE, facts(tmp_path, programs=programs))) == count


def test_the_words_of_a_pair(tmp_path: Path) -> None:
    programs = {"kubelet": "1.26.0", "containerd": "1.5.9"}
    assert said(pairs.GATE, facts(tmp_path, programs=programs)) == [
        (
            "pairs: kubelet 1.26.0 does not work with containerd 1.5.9: the kubelet speaks version 1 of the CRI only, "
            "which came with containerd 1.6, and does not start "
            "(https://kubernetes.io/blog/2022/11/18/upcoming-changes-in-kubernetes-1-26/)\n"
            "  take containerd 1.6 or later, or a kubelet before 1.26"
        )
    ]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.34.4\n", "1.34.4"),
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1\n", "1.6.20"),
        ("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376\n", "2.1.4"),
        ("usage: kubelet\n", ""),
    ],
)
def test_versions_as_programs_say_them(text: str, version: str) -> None:
    assert version_of(text) == version


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("v1.34.4", (1, 34)), ("1:1.7.24~ds1-6", (1, 7)), ("2.1", (2, 1)), ("latest", None), ("", None)],
)
def test_minor_versions(version: str, numbers: tuple[int, int] | None) -> None:
    assert minor(version) == numbers
