"""Nothing is believed that no trusted key signed; the shell reads signed documents as Python does."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import CHUNK_SIZE, Artifact, Artifacts, ContainerImage, Manifest
from images.artifact.signing import MOST, SigningKey, verify
from images.errors import SignatureError
from images.values.digests import canonical
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

KEY, OTHER, STRANGER = (SigningKey.generate() for _ in range(3))
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
TRUST = "shuffled() { cat; }\nestablish_trust && "
TRUST += 'echo "$ROOT $SIZE $CHUNK $COUNT|$(echo $ORIGINS)|$REPORT" || echo "$REASON"'


def manifest(epoch: int = 4, root: Mapping[str, object] | None = None) -> Manifest:
    some = Artifact(sha256="0" * 64, size=1)
    whole = Artifact.model_validate(
        {"sha256": "b" * 64, "size": CHUNK_SIZE + 1, "chunks": ("c" * 64, "d" * 64), **(root or {})}
    )
    return Manifest(
        name="sample",
        distribution="debian",
        suite="bookworm",
        architecture="amd64",
        recipe="e" * 64,
        epoch=epoch,
        created=0,
        kernel_version="6.1.0-1-amd64",
        ram_mib=512,
        artifacts=Artifacts(kernel=some, initrd=some, root=whole, packages=some),
        container_images=(ContainerImage(name="localhost/root:1", digest="f" * 64, size=9),),
    )


class Site:
    """A service, two origins, and a machine that trusts two keys."""

    def __init__(self, stage: Stage, stack: ExitStack) -> None:
        self.stage = stage
        self.service, self.first, self.second = (stack.enter_context(serving(Origin())) for _ in range(3))
        for key in (OTHER, KEY):
            (stage.folder / f"keys/{key.public.id}.pub").write_bytes(key.public.to_bytes())

    def bundle(
        self, minimum_epoch: int = 3, report: str | None = None, issued: int = 1, revoked: tuple[str, ...] = ()
    ) -> SiteBundle:
        origins = (self.first.url, "https://127.0.0.1:9", f"{self.second.url}/")
        return SiteBundle(
            site="lab",
            issued=issued,
            minimum_epoch=minimum_epoch,
            origins=origins,
            report=report or self.service.url,
            images_revoked=revoked,
        )

    def offer(self, origin: Origin, image: Manifest, key: SigningKey = KEY, name: str | None = None) -> None:
        place = f"/v1/images/{name or image.digest}/manifest"
        origin.files |= {f"{place}.json": image.to_bytes(), f"{place}.sig": key.sign(image.to_bytes())}

    def sign_anew(self, place: str, *signatures: bytes) -> None:
        """What the service has for `place` gets these signatures."""
        self.service.files[f"{place}.sig"] = b"".join(signatures)

    def offer_bundle(self, origin: Origin, bundle: SiteBundle, key: SigningKey = KEY) -> None:
        origin.files |= {"/v1/site/bundle.json": bundle.to_bytes(), "/v1/site/bundle.sig": key.sign(bundle.to_bytes())}

    def trusted(self, report: str | None = None) -> str:
        """What is known when `manifest()` is believed."""
        root = f"{'b' * 64} {CHUNK_SIZE + 1} {CHUNK_SIZE} 2"
        return f"{root}|{self.first.url} {self.second.url}|{report or self.service.url}"

    def trust(self, image: Manifest | str) -> str:
        digest = image if isinstance(image, str) else image.digest
        done = self.stage.sh(TRUST, REPORT=self.service.url, ORIGINS=self.first.url, IMAGE=digest)
        return done.stdout.splitlines()[-1]


@pytest.fixture
def site(stage: Stage) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stage, stack)


def test_a_signed_image_of_a_signed_site(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    assert site.trust(image) == site.trusted()
    chunks = (site.stage.run_folder / "manifest.json.chunks").read_text()
    assert chunks == f"0 {'c' * 64}\n1 {'d' * 64}\n"


def test_any_trusted_key_will_do_and_any_origin_may_have_it(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.first, site.bundle(), OTHER)
    site.offer(site.second, image)
    assert site.trust(image) == site.trusted()
    assert site.service.asked, "the service is asked first"


BOTH = ("/v1/site/bundle", "/v1/images/{}/manifest")


def test_any_of_several_signatures_will_do(site: Site) -> None:
    """Those of strangers, those that do not fit and what is no signature before it do not hinder."""
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    for place in (name.format(image.digest) for name in BOTH):
        data = site.service.files[f"{place}.json"]
        site.sign_anew(place, STRANGER.sign(data), OTHER.sign(b"another"), b"one line\nand another\n", KEY.sign(data))
    assert site.trust(image) == site.trusted()


def test_none_of_several_signatures(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    place = BOTH[1].format(image.digest)
    site.sign_anew(place, STRANGER.sign(image.to_bytes()), KEY.sign(b"another"), OTHER.sign(b"another"))
    url = f"{site.service.url}{place}.json"
    assert site.trust(image) == f"ImageRefused: {url} is not signed by a key that this machine trusts;"


def test_a_signature_of_an_earlier_document_is_not_tried_again(site: Site) -> None:
    """The bundle had two signatures; the second file of that split must not stand beside the manifest's one."""
    image = manifest()
    site.offer_bundle(site.service, site.bundle(), STRANGER)
    site.sign_anew(BOTH[0], STRANGER.sign(b"1"), STRANGER.sign(b"2"), KEY.sign(site.bundle().to_bytes()))
    site.offer_bundle(site.first, site.bundle(minimum_epoch=2), STRANGER)
    site.service.alter = lambda data: data.replace(b'"issued":1', b'"issued":2')
    refused = "".join(
        f" {origin.url}/v1/site/bundle.json is not signed by a key that this machine trusts;"
        for origin in (site.service, site.first)
    )
    assert site.trust(image) == f"ImageRefused:{refused}"
    left = sorted(path.name for path in site.stage.run_folder.glob("bundle.sig.*"))
    assert left == ["bundle.sig.1"]


FAKE = 'small() { cp "$1" "$2"; }; refuse() { return 1; }; signed_document doc out && echo believed || echo refused'


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([KEY, OTHER, STRANGER]), st.booleans()), min_size=1, max_size=MOST))
def test_the_shell_believes_what_python_believes(stage: Stage, signed: list[tuple[SigningKey, bool]]) -> None:
    for key in (KEY, OTHER):
        (stage.folder / f"keys/{key.public.id}.pub").write_bytes(key.public.to_bytes())
    signatures = b"".join(key.sign(b"m" if fits else b"other") for key, fits in signed)
    (stage.folder / "doc.json").write_bytes(b"m")
    (stage.folder / "doc.sig").write_bytes(signatures)
    try:
        expected = "believed" if verify(b"m", signatures, [KEY.public, OTHER.public]) else ""
    except SignatureError:
        expected = "refused"
    assert stage.sh(FAKE).stdout == f"{expected}\n"


def test_eight_signatures_are_looked_at_and_no_more(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    place, good = BOTH[1].format(image.digest), KEY.sign(image.to_bytes())
    site.sign_anew(place, *(MOST - 1) * (STRANGER.sign(b"x"),), good)
    assert site.trust(image) == site.trusted()
    site.sign_anew(place, *MOST * (STRANGER.sign(b"x"),), good)
    assert site.trust(image).startswith("ImageRefused:")


def test_the_site_is_where_the_bundle_says_and_not_the_command_line(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle(report=f"{site.second.url}/"))
    site.offer(site.service, image)  # which the bundle does not name
    assert site.trust(image).startswith(
        f"cannot fetch the manifest of image {image.digest}: {site.second.url}/v1/images/"
    )
    site.offer(site.second, image)
    assert site.trust(image) == site.trusted(report=site.second.url)


def arranged(site: Site, command_line: str, of_bundle: str, shuffled: str = "shuffled() { cat; }; ") -> str:
    """`netboot.origins` of the command line, and the bundle's, to PREFERRED and ORIGINS."""
    words = f"netboot.boot={'0' * 8}-0000-0000-0000-{'0' * 12} netboot.image={'a' * 64} netboot.report=http://s"
    (site.stage.folder / "cmdline").write_text(f"{words} netboot.origins={command_line}\n")
    script = f'read_command_line cmdline >&2\n{shuffled}arrange_origins {of_bundle}; echo "$PREFERRED $ORIGINS"'
    return site.stage.sh(script).stdout.strip()


@pytest.mark.parametrize(
    ("command_line", "of_bundle", "expected"),
    [
        ("http://r1/,http://r2,,http://a,http://s", "http://a http://s", "2 http://r1 http://r2 http://a http://s"),
        ("http://r,,http://c,,http://a,http://s", "http://s", "1 http://r http://c http://a http://s"),
        ("http://a,,http://a,http://b,http://s", "http://b http://a http://s", "1 http://a http://b http://s"),
        ("http://s", "http://a http://b http://s", "2 http://a http://b http://s"),
        ("http://a,http://s", "http://a https://x http://s", "1 http://a http://s"),
        ("https://r,,http://a,http://s", "http://a http://s", "1 http://a http://s"),
        ("http://s", "http://s", "1 http://s"),
        ("http://r,,http://s", "http://s", "1 http://r http://s"),
        ("http://r.a,,http://s", "http://rxa http://s", "1 http://r.a http://rxa http://s"),
        ("http://a,http://s", "http://b http://s", "1 http://a http://b http://s"),
        (",,http://a,,,,http://s,,", "http://b", "1 http://a http://b http://s"),
    ],
)
def test_groups_of_origins_keep_their_order_and_the_service_is_the_last(
    site: Site, command_line: str, of_bundle: str, expected: str
) -> None:
    assert arranged(site, command_line, of_bundle) == expected


def test_those_preferred_alike_are_shuffled_at_each_boot(site: Site) -> None:
    rack, of_class, of_site = ([f"http://{name}{n}" for n in range(6)] for name in "rca")
    command_line = ",,".join(",".join(group) for group in (rack, of_class, (*of_site, "http://s")))
    found = [arranged(site, command_line, " ".join((*of_site, "http://s")), "") for _ in range(2)]
    for line in found:
        number, *origins = line.split()
        assert (number, origins[18:]) == ("6", ["http://s"])
        assert [sorted(origins[at : at + 6]) for at in (0, 6, 12)] == [rack, of_class, of_site]
    assert found[0] != found[1]  # once in some hundred millions of times they are the same


@pytest.mark.parametrize("status", [503, 429])
def test_a_busy_service_is_waited_for(site: Site, status: int) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    site.service.busy = [(status, "3")] * 6  # it is asked twice each time, for wget drops the headers
    assert site.trust(image) == site.trusted()


def test_a_stranger_signed_the_manifest(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image, STRANGER)
    url = f"{site.service.url}/v1/images/{image.digest}/manifest.json"
    assert site.trust(image) == f"ImageRefused: {url} is not signed by a key that this machine trusts;"


def test_a_stranger_at_one_origin_does_not_keep_a_good_one_from_being_used(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle(), STRANGER)
    site.offer_bundle(site.first, site.bundle())
    site.offer(site.service, image, STRANGER)
    site.offer(site.second, image)
    assert site.trust(image) == site.trusted()


def test_a_stranger_signed_the_bundle(site: Site) -> None:
    site.offer_bundle(site.service, site.bundle(), STRANGER)
    assert site.trust(manifest()) == (
        f"ImageRefused: {site.service.url}/v1/site/bundle.json is not signed by a key that this machine trusts;"
    )


def test_a_signed_manifest_of_another_image(site: Site) -> None:
    image, other = manifest(), manifest(epoch=9)
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, other, name=image.digest)
    assert site.trust(image) == (
        f"ImageRefused: the manifest from {site.service.url} is not the one that was asked for (sha256 {other.digest});"
    )


def test_one_altered_byte(site: Site) -> None:
    image = manifest()
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    site.service.alter = lambda data: data.replace(b'"epoch":4', b'"epoch":5')
    assert site.service.alter(image.to_bytes()) != image.to_bytes()
    url = f"{site.service.url}/v1/images/{image.digest}/manifest.json"
    assert site.trust(image) == f"ImageRefused: {url} is not signed by a key that this machine trusts;"


@pytest.mark.parametrize(("minimum", "refused"), [(4, False), (5, True), (2**63, True)])
def test_an_epoch_below_the_minimum(site: Site, minimum: int, refused: bool) -> None:
    image = manifest(epoch=4)
    site.offer_bundle(site.service, site.bundle(minimum))
    site.offer(site.service, image)
    words = f"ImageRefused: its epoch 4 is below this site's minimum, {minimum}; build it anew"
    assert (site.trust(image) == words) is refused


def test_a_revoked_image_is_refused_before_its_manifest_is_asked_for(site: Site) -> None:
    image, others = manifest(), ("0" * 64, "f" * 64)
    site.offer_bundle(site.service, site.bundle(revoked=others))
    site.offer(site.service, image)
    assert site.trust(image) == site.trusted()
    site.offer_bundle(site.service, site.bundle(revoked=tuple(sorted((*others, image.digest)))))
    site.service.asked.clear()
    assert site.trust(image) == f"ImageRefused: image {image.digest} is revoked at this site"
    assert not any("/images/" in path for path, _ in site.service.asked)


LOOK = 'cp "$RUN/now" "$RUN/bundle.json"; look_again && echo goes on || echo "$REASON"'


@pytest.mark.parametrize(
    ("issued", "revoked", "key", "goes_on"),
    [
        (2, True, KEY, False),
        (2, False, KEY, True),
        (1, True, KEY, True),  # the very bundle that was looked at
        (0, True, KEY, True),  # an older one
        (2, True, STRANGER, True),
    ],
)
def test_a_newer_bundle_may_have_revoked_it_meanwhile(
    site: Site, issued: int, revoked: bool, key: SigningKey, goes_on: bool
) -> None:
    image = "a" * 64
    (site.stage.run_folder / "now").write_bytes(site.bundle().to_bytes())
    site.offer_bundle(site.service, site.bundle(issued=issued, revoked=(image,) if revoked else ()), key)
    done = site.stage.sh(LOOK, REPORT=site.service.url, IMAGE=image)
    said = "goes on" if goes_on else f"ImageRefused: image {image} is revoked at this site"
    assert done.stdout.splitlines()[-1] == said


def test_a_service_that_is_away_when_it_is_looked_again_stops_no_boot(site: Site) -> None:
    (site.stage.run_folder / "now").write_bytes(site.bundle().to_bytes())
    (site.stage.run_folder / "newer.json").write_bytes(site.bundle(issued=9, revoked=("a" * 64,)).to_bytes())
    done = site.stage.sh(LOOK, REPORT="http://127.0.0.1:9", IMAGE="a" * 64)
    assert done.stdout == "goes on\n"


@pytest.mark.parametrize(
    ("root", "message"),
    [
        ({"chunks": ()}, "ImageRefused: the manifest has 0 chunk digests for 4194305 bytes"),
        ({"chunks": ("c" * 64,)}, "ImageRefused: the manifest has 1 chunk digests for 4194305 bytes"),
        ({"chunks": (), "size": 0}, "ImageRefused: the manifest has 0 chunk digests for 0 bytes"),
    ],
)
def test_a_manifest_whose_digests_do_not_cover_the_image(site: Site, root: dict[str, object], message: str) -> None:
    image = manifest(root=root)
    site.offer_bundle(site.service, site.bundle())
    site.offer(site.service, image)
    assert site.trust(image) == message


def test_nobody_answers(site: Site) -> None:
    assert site.trust(manifest()) == "cannot fetch the site bundle:" + "".join(
        f" {origin.url}/v1/site/bundle.json: wget: server returned error: HTTP/1.1 404 Not Found;"
        for origin in (site.service, site.first)
    )


def test_an_endless_document_is_cut(site: Site) -> None:
    site.service.files["/v1/site/bundle.json"] = bytes(20_000_000)
    assert site.trust(manifest()).startswith("cannot fetch the site bundle: ")
    assert max(path.stat().st_size for path in site.stage.run_folder.iterdir()) <= 8 * 2**20


artifacts = st.builds(
    Artifact, sha256=DIGESTS, size=st.integers(0, 2**53), chunks=st.lists(DIGESTS, max_size=5).map(tuple)
)
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
manifests = st.builds(
    Manifest,
    name=names,
    distribution=names,
    suite=names,
    architecture=st.sampled_from(["amd64", "arm64"]),
    recipe=DIGESTS,
    epoch=st.integers(0, 2**62),
    created=st.integers(0, 2**40),
    kernel_version=st.sampled_from(["6.1.0-1-amd64", "size", "1"]),
    kernel_arguments=st.lists(st.sampled_from(["epoch=1", "root:0", "size:5"]), max_size=3).map(tuple),
    ram_mib=st.integers(1, 10**6),
    root_format=st.sampled_from(["squashfs", "erofs"]),
    artifacts=st.builds(Artifacts, kernel=artifacts, initrd=artifacts, root=artifacts, packages=artifacts),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(manifests)
def test_the_shell_reads_manifests_as_python_does(stage: Stage, image: Manifest) -> None:
    (stage.folder / "m").write_bytes(image.to_bytes())
    done = stage.sh('root_of_manifest m; echo "$(number epoch m) $ROOT $SIZE $FORMAT $CHUNK $COUNT"; cat m.chunks')
    root = image.artifacts.root
    assert done.stdout.splitlines() == [
        f"{image.epoch} {root.sha256} {root.size} {image.root_format} {image.chunk_size} {len(root.chunks)}",
        *(f"{number} {digest}" for number, digest in enumerate(root.chunks)),
    ]


urls = st.sampled_from(["http://a", "https://[fd00::1]:8080/x", "http://10.0.0.1:1/", "http://b.example"])
nasty = st.one_of(
    st.text(max_size=30), st.sampled_from(['"origins":["http://evil"],"report":"', '","minimum_epoch":0}', "\\"])
)
bundles = st.builds(
    SiteBundle,
    site=names,
    issued=st.integers(0, 2**40),
    minimum_epoch=st.integers(0, 2**62),
    origins=st.lists(urls, min_size=1, max_size=4).map(tuple),
    report=urls,
    join_url=st.none() | urls,
    join_authorities=st.lists(nasty, max_size=3).map(tuple),
    images_revoked=st.sets(DIGESTS, max_size=5).map(lambda digests: tuple(sorted(digests))),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bundles)
def test_the_shell_reads_bundles_as_python_does(stage: Stage, bundle: SiteBundle) -> None:
    (stage.folder / "b").write_bytes(bundle.to_bytes())
    done = stage.sh("number minimum_epoch b; number issued b; bundle_report b; bundle_origins b; bundle_revoked b")
    numbers = [str(bundle.minimum_epoch), str(bundle.issued)]
    assert done.stdout.splitlines() == [*numbers, bundle.report, *bundle.origins, *bundle.images_revoked]


lists = st.one_of(
    st.lists(st.sampled_from(["a" * 64, "b" * 64, "A" * 64, "c" * 63, "1" * 64, "", "0" * 64, "é"]), max_size=4),
    st.sampled_from(["a" * 64, None, 1, [1], [["a" * 64]], {"a" * 64: 1}, [None]]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lists)
def test_the_shell_refuses_every_image_by_a_list_that_python_refuses(stage: Stage, revoked: object) -> None:
    """And by one that Python reads those of the list, and no other."""
    url = "http://192.0.2.1"
    plain = SiteBundle(site="lab", issued=1, minimum_epoch=0, origins=(url,), report=url).model_dump(by_alias=True)
    data = canonical(plain | {"images_revoked": revoked})
    try:
        read = SiteBundle.model_validate_json(data).images_revoked
        known = read if read == tuple(revoked) and read else None  # type: ignore[arg-type]
    except ValidationError:
        known = None
    (stage.folder / "b").write_bytes(data)
    script = "".join(
        f"IMAGE={image}; not_revoked b && echo boots || echo refused; " for image in ("a" * 64, "b" * 64, "e" * 64)
    )
    expected = ["refused" if known is None or image * 64 in known else "boots" for image in "abe"]
    assert stage.sh(script).stdout.split() == expected


BEFORE = r"""
number() { sed -n 's/.*"'"$1"'":\([0-9]*\)[,}].*/\1/p' "$2"; }
bundle_origins() { sed -n 's/.*"origins":\["\(.*\)"\],"report":".*/\1/p' "$1" | sed 's/","/\n/g'; }
bundle_report() { sed -n 's/.*"report":"\([^"]*\)","schema":.*/\1/p' "$1"; }
number minimum_epoch b; bundle_report b; bundle_origins b
"""
"""What initrds have that were built before there were revocations: they go on booting, and know of none."""


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bundles)
def test_an_initrd_of_before_reads_a_bundle_that_revokes_as_ever(stage: Stage, bundle: SiteBundle) -> None:
    (stage.folder / "b").write_bytes(bundle.to_bytes())
    assert stage.sh(BEFORE).stdout.splitlines() == [str(bundle.minimum_epoch), bundle.report, *bundle.origins]


def test_a_site_whose_origins_all_want_tls(site: Site) -> None:
    bundle = site.bundle().model_copy(update={"origins": ("https://a", "https://b")})
    site.offer_bundle(site.service, bundle)
    assert site.trust(manifest()) == "ImageRefused: the site bundle names no origin with plain HTTP"
