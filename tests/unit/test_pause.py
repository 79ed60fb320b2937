"""Who asks outside whether anything may begin: what counts, for how long, and that everything else is a no."""

import logging
from pathlib import Path

import pytest

from images.values.strict import FaultsError
from lab.kube.authority import Authority
from netboot.cli.check import check_site
from netboot.config import Config, load_config
from netboot.confine.access import access_of
from netboot.controllers.pause import PauseController
from netboot.credentials import PUT_IT_THERE
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import permission
from netboot.machines.maintenance import Freeze, Permission, Signal, Window
from netboot.status.pause import PauseStatus
from netboot.stores.signal import SaidSignal
from netboot.stores.status import write_status
from tests.sites import make_site

WHERE = "https://change.example:8443"
GO, PAUSE = Signal(True, "it lets things begin"), Signal(False, "it says: no")
UNTOLD = f"whether {WHERE} lets anything begin cannot be told: "
SILENT = f"{UNTOLD}the process pause is silent"


class Stage:
    """Somebody outside, a clock, and who asks: every 15 s, an answer lasts 35."""

    where = WHERE

    def __init__(self) -> None:
        self.now = 100.0
        self.answer: Signal | Exception = GO
        self.controller = PauseController(self, 15, 35, self, lambda: self.now)

    def ask(self) -> Signal:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def now_ms(self) -> int:
        return 1

    def said(self) -> tuple[bool, str, float | None]:
        status = self.controller.status()
        assert (status.ok, status.message) == (status.age_seconds is not None, status.reason)
        return status.may, status.reason, status.age_seconds


def test_an_answer_counts_until_the_next_and_whatever_fails_is_a_no(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    assert stage.said() == (False, f"{UNTOLD}it has not been asked yet", None)
    stage.controller.step()
    stage.now += 15
    assert stage.said() == (True, GO.reason, 15.0)
    stage.answer = PAUSE
    stage.controller.step()
    assert stage.said() == (False, PAUSE.reason, 0.0)
    stage.answer = GO
    stage.controller.step()
    assert stage.said()[0]
    stage.answer = CannotTellError("it cannot be reached: Connection refused")
    for _ in range(3):
        stage.controller.step()
        assert stage.said() == (False, f"{UNTOLD}it cannot be reached: Connection refused", None)
    stage.answer = ZeroDivisionError()
    stage.controller.step()
    assert stage.said() == (False, f"{UNTOLD}a defect; see the log", None)
    stage.answer = GO
    stage.controller.step()
    assert stage.said() == (True, GO.reason, 0.0)
    status = stage.controller.status()
    assert (status.asked, status.failed) == (8, 4)
    assert [record.getMessage() for record in caplog.records] == [
        GO.reason,
        PAUSE.reason,
        GO.reason,
        f"{UNTOLD}it cannot be reached: Connection refused",
        f"{UNTOLD}a defect; see the log",
        f"{WHERE} can be asked again",
        GO.reason,
    ]


def test_a_question_that_hangs_leaves_no_yes_behind() -> None:
    stage = Stage()
    stage.controller.step()
    stage.now += 35
    assert stage.said() == (True, GO.reason, 35.0)
    stage.now += 0.1
    assert stage.said() == (False, f"{UNTOLD}it has not answered for 35 s", None)


class Freezes:
    """Nothing is frozen, or this."""

    def __init__(self, freeze: Freeze | None = None) -> None:
        self.freeze = freeze

    def standing(self, now_ms: int) -> Freeze | None:
        return self.freeze if self.freeze is not None and self.freeze.stands(now_ms) else None


class Says:
    def __init__(self, signal: Signal | None) -> None:
        self.signal = signal

    def said(self) -> Signal | None:
        return self.signal


def test_a_freeze_is_over_the_signal_and_the_signal_over_windows() -> None:
    always, never = Window(name="always", start="00:00", end="00:00"), Window(name="gone", start="00:00", end="00:01")
    freeze = Freezes(Freeze(who="alice", reason="power", since_ms=0, until_ms=10))
    now = 43_200_000
    assert permission(freeze, Says(PAUSE), [always], 9) == Permission(False, "frozen by alice: power", 10)
    assert permission(freeze, Says(PAUSE), [always], 10) == Permission(False, PAUSE.reason)
    for signal in (GO, None):
        assert permission(Freezes(), Says(signal), [always], now).reason == "maintenance window always is open"
        assert not permission(Freezes(), Says(signal), [never], now).may
        assert permission(Freezes(), Says(signal), [], now).may
    assert permission(Freezes(), Says(PAUSE), [], now) == Permission(False, PAUSE.reason)


def site(root: Path, section: str) -> Config:
    make_site(root)
    file = root / "netboot.yaml"
    file.write_text(f"{file.read_text()}{section}")
    return load_config(file)


HOOK = f"pause: {{hook: {WHERE}, token_file: secrets/pause.token, authority: tls/pause.crt}}\n"


def test_whoever_wants_to_begin_something_reads_what_the_process_said(tmp_path: Path) -> None:
    config = site(tmp_path, HOOK)
    signals = SaidSignal(config, lambda: 50_000)
    assert signals.said() == Signal(False, SILENT)
    common = {"at_ms": 1, "ok": True, "message": "m", "age_seconds": 1.0, "asked": 1, "failed": 0}

    def say(up_ms: int) -> None:
        status = PauseStatus.model_validate({**common, "may": True, "reason": GO.reason, "up_ms": up_ms})
        write_status(config.data / "pause", "pause", status)

    for up_ms, expected in (
        (50_000, GO),
        (40_000, GO),
        (39_999, Signal(False, SILENT)),
        (60_001, Signal(False, SILENT)),
    ):
        say(up_ms)
        assert signals.said() == expected, "of before the machine was started, or of long ago"
    (config.data / "pause" / "pause.json").write_text("{")
    assert signals.said() == Signal(False, SILENT)
    yes = PauseStatus.model_validate({**common, "may": True, "reason": GO.reason, "up_ms": 50_000})
    write_status(config.data / "status", "pause", yes)
    assert signals.said() == Signal(False, SILENT), "several processes write there"
    assert SaidSignal(config.model_copy(update={"pause": None}), lambda: 0).said() is None


def test_the_process_reaches_one_port_its_own_files_and_nothing_else(tmp_path: Path) -> None:
    config = site(tmp_path, HOOK)
    access = access_of("pause", "pause", "", config)
    assert access.connect == frozenset({53, 8443})
    assert access.handed == {tmp_path / "secrets" / "pause.token", tmp_path / "tls" / "pause.crt"}
    assert not (access.kubeconfigs or access.public_keys or access.databases or access.stores)
    assert set(access.write) == {Path("/dev/null"), *(config.data / name for name in ("tmp/pause", "status", "pause"))}
    assert not any(config.data.is_relative_to(folder) for folder in access.read)
    usual = site(tmp_path / "other", "pause: {prometheus: https://p.example, query: up}\n")
    assert access_of("pause", "pause", "", usual).connect == frozenset({53, 443})


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{}", "either hook or prometheus, with query, says whom to ask: give one of them"),
        ("{hook: https://a, prometheus: https://b, query: x}", "either hook or prometheus, with query"),
        ("{prometheus: https://b}", "prometheus and query go together"),
        ("{hook: https://a, query: x}", "prometheus and query go together"),
        ("{hook: http://a}", "must be https://: credentials travel here"),
        ("{hook: 'https://me:secret@a'}", "must be http:// or https://, a host or address"),
        ("{hook: 'https://a/?token=secret'}", "must be http:// or https://, a host or address"),
        ("{hook: https://a, every_seconds: 4}", "pause.every_seconds"),
        ("{hook: https://a, deadline_seconds: 31}", "pause.deadline_seconds"),
    ],
)
def test_a_section_with_a_fault(tmp_path: Path, section: str, words: str) -> None:
    with pytest.raises(FaultsError) as caught:
        site(tmp_path, f"pause: {section}\n")
    assert words in str(caught.value)
    assert "secret@" not in str(caught.value)


def test_what_the_section_names_is_checked(tmp_path: Path) -> None:
    config = site(tmp_path, HOOK)
    assert config.pause is not None
    token, authority = config.pause.token_file, config.pause.authority
    assert token is not None and authority is not None
    authority.parent.mkdir()

    def faults() -> list[str]:
        found = [str(fault).replace(f"{tmp_path}/", "") for fault in check_site(tmp_path / "netboot.yaml").faults]
        return [fault for fault in found if "pause" in fault]

    where, end = "secrets/pause.token", "; until then nothing that acts by itself begins"
    assert faults() == [
        f"{where}: pause.token_file: {where} cannot be read: No such file or directory: {PUT_IT_THERE}{end}",
        f"tls/pause.crt: pause.authority cannot be read: No such file or directory: {PUT_IT_THERE}",
    ]
    token.write_text("a-token")
    token.chmod(0o604)
    authority.write_bytes(Authority("x").pair.certificate)
    assert faults() == [f"{where}: others can read pause.token_file {where} (mode 0604): `chmod 600 {where}`{end}"]
    token.chmod(0o600)
    assert faults() == []
