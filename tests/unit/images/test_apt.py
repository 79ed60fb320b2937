"""What apt prints, read."""

from images.build.apt import Versions, policies

SHOWN = """\
systemd:
  Installed: (none)
  Candidate: 255.4-1ubuntu8.19
  Version table:
     255.4-1ubuntu8.19 500 (phased 50%)
        500 http://mirror.example/ubuntu noble-updates/main amd64 Packages
     255.4-1ubuntu8 -1
        -1 http://mirror.example/ubuntu noble/main amd64 Packages
awk:
  Installed: (none)
  Candidate: (none)
  Version table:
held:
  Installed: 1.0
  Candidate: 1.0
  Version table:
 *** 1.0 1001
        500 http://mirror.example/ubuntu noble/main amd64 Packages
"""


def test_policies() -> None:
    assert policies(SHOWN) == {
        "systemd": Versions("255.4-1ubuntu8.19", ("255.4-1ubuntu8.19", "255.4-1ubuntu8")),
        "awk": Versions("", ()),
        "held": Versions("1.0", ("1.0",)),
    }


def test_what_is_not_apts_answer_is_no_package() -> None:
    assert policies("") == policies("W: something\n     1.0 500\n") == {}
