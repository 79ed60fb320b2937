import pytest
from tests.cluster.threats.live_site import LiveSite
from tests.cluster.threats.test_gate import MERGE, Node, break_glass

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00"])
def test_explore(site: LiveSite, moment: str) -> None:
    odd = Node(site)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": moment, "lastTransitionTime": moment}
    a = odd.patch(odd.session, {"status": {"conditions": [ready]}})
    print("PATCH", a.status_code, a.text[:300])
    g = odd.get()
    print([c for c in g["status"]["conditions"] if c["type"] == "Ready"])
    a = odd.say()
    print("SAY", a.status_code, a.text[:300])
    glass = break_glass(site)
    a = odd.patch(glass, {"metadata": {"annotations": {"netboot.dev/x": "manual"}}})
    print("GLASS", a.status_code, a.text[:300])
    a = odd.patch(glass, {"metadata": {"annotations": {"netboot.dev/x": "manuala"}}}, "", MERGE)
    print("GLASSM", a.status_code, a.text[:300])
    ordinary = Node(site)
    assert ordinary.say().status_code == 200
    try:
        ordinary.becomes()
        print("ORDINARY open")
    except AssertionError as e:
        print("ORDINARY shut", e)
    print("ODD", odd.taints())
    print("\n".join(site.service.log.splitlines()[-12:]))


