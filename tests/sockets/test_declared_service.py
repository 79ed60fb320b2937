"""What is declared by the API of `netboot serve`, whole, within its walls."""

from pathlib import Path

from netboot.config import load_config
from tests.processes import wait_for
from tests.sites import make_site
from tests.sockets.service import serving

MAC = "52:54:00:12:34:99"


def test_a_stranger_is_declared_and_boots(tmp_path: Path) -> None:
    make_site(tmp_path / "site", workers=1)
    file = tmp_path / "site" / "netboot.yaml"
    file.write_text(f"{file.read_text()}inventory_writable: true\n")
    with serving(load_config(file), file) as service:
        assert service.outcome(MAC) == "unknown"
        order = ("machine", "declare", MAC, "--name", "gpu-009", "--profile", "compute")
        wait_for(lambda: service.netboot(*order).returncode == 0)
        wait_for(lambda: service.outcome(MAC) != "unknown")
        assert service.api("/v1/inventory/machines/gpu-009")["declared"]["match"] == {"macs": [MAC]}
        rows = [f"r1-{number:03},5254.0001.{number:04x}" for number in range(437)]
        (tmp_path / "rack.csv").write_text("\n".join(["name,macs", *rows]))
        many = ("machine", "import", "--csv", str(tmp_path / "rack.csv"), "--profile", "compute")
        assert service.netboot(*many).returncode == 0
        wait_for(lambda: service.outcome("52:54:00:01:01:b4") != "unknown")
        assert service.outcome("52:54:00:01:00:00") != "unknown"
        (tmp_path / "r7.yaml").write_text("racks: [{name: r7}]\n")
        assert service.netboot("inventory", "set", str(tmp_path / "r7.yaml")).returncode == 0
        wait_for(lambda: service.api("/v1/inventory")["racks"] == ["r7"])
        assert service.stop() == 0
    assert (tmp_path / "site" / "inventory" / "machine-gpu-009.yaml").stat().st_mode & 0o777 == 0o644
