"""Keys of archives: read by gpg, judged beside a time that is given. No key here depends on the day of the test."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from images.build import keyrings
from images.build.keyrings import ArchiveKey
from images.errors import RecipeError
from images.recipe import inherit
from images.recipe.recipe import Recipe, Source

DAY = 86_400
KEYS = inherit.SHIPPED / "keys"
KUBERNETES = 1_798_508_024
"""2026-12-29 01:33:44 UTC: when the key that signs pkgs.k8s.io ends, by its newest signature of itself."""
WORDS = (
    "source kubernetes, https://pkgs.k8s.io/core:/stable:/v1.34/deb: the key "
    "DE15B14486CD377B9E876E1A234654DA9A296436 (isv:kubernetes OBS Project <isv:kubernetes@build.opensuse.org>) "
    "in kubernetes-2022.asc {} on 2026-12-29; take the key that the archive has now, compare its fingerprint, and "
    'name it as `signed_by` of that source; see docs/recipes.md, "Keys of archives"'
)


def recipe(name: str) -> Recipe:
    return inherit.load(inherit.find(name))


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (KUBERNETES - 60 * DAY - 1, ()),
        (KUBERNETES - 60 * DAY, (WORDS.format("expires"),)),
        (KUBERNETES - 1, (WORDS.format("expires"),)),
    ],
)
def test_a_key_is_warned_of_in_the_60_days_before_it_expires(at: int, said: tuple[str, ...]) -> None:
    assert keyrings.check(recipe("ubuntu-24.04-node"), at) == said


def test_an_expired_key_is_an_error_with_the_source_the_day_and_the_remedy() -> None:
    with pytest.raises(RecipeError) as raised:
        keyrings.check(recipe("debian-12-node"), KUBERNETES)
    assert str(raised.value) == WORDS.format("expired")


def test_every_expired_source_is_named_at_once() -> None:
    at = datetime(2031, 6, 1, tzinfo=UTC).timestamp()
    with pytest.raises(RecipeError) as raised:
        keyrings.check(recipe("debian-12-node"), at)
    lines = str(raised.value).splitlines()
    assert [line.split(": the key ")[0] for line in lines] == [
        "http://deb.debian.org/debian",
        "http://deb.debian.org/debian-security",
        "source kubernetes, https://pkgs.k8s.io/core:/stable:/v1.34/deb",
    ]


@pytest.mark.parametrize("name", ["ubuntu-24.04-minimal", "ubuntu-24.04-dpu"])
def test_keys_that_never_expire_are_never_said(name: str) -> None:
    sources = [source for source in recipe(name).sources if source.name == "ubuntu"]
    assert keyrings.lifetimes(sources) == ()


def test_subkeys_that_expired_say_nothing_of_the_key_that_signs_itself() -> None:
    (key,) = keyrings.read(inherit.SHIPPED / "features/keys/nvidia-container-toolkit.asc")
    assert (key.fingerprint, key.expires) == ("C95B321B61E88C1809C4F759DDCAE044F796ECB0", None)


def test_a_successor_beside_a_key_makes_the_file_last_longer(tmp_path: Path) -> None:
    both = tmp_path / "both.asc"
    both.write_bytes((KEYS / "kubernetes-2022.asc").read_bytes() + (KEYS / "debian-12-archive.asc").read_bytes())
    source = Source(name="kubernetes", url="http://mirror.example/k", suites=("/",), signed_by=both)
    (lifetime,) = keyrings.lifetimes([source])
    assert (lifetime.last.fingerprint, lifetime.expires) == ("4D64FEC119C2029067D6E791F8D2585B8783D481", 1_926_780_243)


def test_a_file_that_cannot_be_read_is_not_called_no_key(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as raised:
        keyrings.read(tmp_path / "gone.asc")
    assert str(raised.value) == f"{tmp_path}/gone.asc cannot be read: No such file or directory"


def test_what_is_no_key_is_said_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key.asc"
    path.write_text("a key\n")
    with pytest.raises(RecipeError) as raised:
        keyrings.read(path)
    assert str(raised.value) == (
        f"{path} holds no public key that can sign; is it an archive's key, in OpenPGP's form?"
    )


def block(*lines: str) -> str:
    return "\n".join(lines) + "\n"


FPR, UID = "fpr:::::::::AA:", r"uid:-::::1::00::A\x3a B\x0a\x1b[31m::::::::::0:"


@pytest.mark.parametrize(
    ("shown", "keys"),
    [
        ("", ()),
        ("gpg: something else\nfpr:::::::::BB:\n", ()),
        (block("pub:r:1:1:AA:1:9::-:::scSC::::::23::0:", FPR, UID), ()),
        (block("pub:-:1:1:AA:1:9::-:::cSC::::::23::0:", FPR, UID), ()),
        (block("pub:-:1:1:AA:1:9::-:::scSC::::::23::0:", FPR), (ArchiveKey("AA", "nobody named", 9),)),
        (
            block("pub:-:1:1:AA:1:50::-:::cSC::::::23::0:", FPR, UID, "sub:-:1:1:BB:1:70:::::s::::::23:"),
            (ArchiveKey("AA", "A: B??[31m", 50),),
        ),
        (
            block("pub:-:1:1:AA:1:::-:::cSC::::::23::0:", FPR, UID, "sub:r:1:1:BB:1:::::::s::::::23:"),
            (),
        ),
        (
            block("pub:-:1:1:AA:1:::-:::cESC::::::23::0:", FPR, UID, "sub:e:1:1:BB:1:7:::::s::::::23:"),
            (ArchiveKey("AA", "A: B??[31m", 7),),
        ),
    ],
)
def test_gpgs_listing(shown: str, keys: tuple[ArchiveKey, ...]) -> None:
    assert keyrings.parse(shown) == keys
