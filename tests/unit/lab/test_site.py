"""Sites of the lab: one more of a site that is there."""

from pathlib import Path

from lab.site import another_site, make_site
from netboot.config import load_config


def test_another_site_has_ports_and_a_disk_of_its_own_and_all_else_of_the_first(tmp_path: Path) -> None:
    first = make_site(tmp_path / "site", "127.0.0.1", join=True)
    for part in ("blobs", "images"):
        (first.store / part).mkdir(exist_ok=True)
        (first.store / part / "x").touch()
    (first.folder / "data").mkdir(exist_ok=True)
    other = another_site(first, tmp_path / "other")
    one, two = load_config(first.config), load_config(other.config)
    assert one.join is not None
    assert two.join is not None
    ports = [
        str(each).rpartition(":")[2]
        for config, join in ((one, one.join), (two, two.join))
        for each in (config.provisioning.listen, config.management.listen, join.listen)
    ]
    assert len(set(ports)) == 6
    assert (other.url, other.management) == (f"http://127.0.0.1:{ports[3]}", f"http://127.0.0.1:{ports[4]}")
    assert two.provisioning.url == other.url
    assert str(two.join.url) == f"https://127.0.0.1:{ports[5]}"
    assert not (other.folder / "data").exists()
    assert [(other.store / part).exists() for part in ("blobs", "images", "bundles")] == [False, False, True]
    for path in ("keys", "secrets", "tls", "inventory"):
        files = {each.name: each.read_bytes() for each in (first.folder / path).iterdir() if each.is_file()}
        assert files
        assert {each.name: each.read_bytes() for each in (other.folder / path).iterdir() if each.is_file()} == files
