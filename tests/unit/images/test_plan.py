"""Which steps there are and what makes them the same: found by their files, keyed by the code that they import."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from images.build import steps, tools
from images.build.cache import Cache
from images.build.code import EXCEPTIONS, sources
from images.build.context import Context
from images.build.gates import checks
from images.build.gates.gate import all_gates
from images.build.graph import Graph
from images.build.pipeline import start
from images.build.plan import all_steps, plan
from images.build.sources import Mirror
from images.build.step import Product
from images.build.steps import kernel, root
from images.errors import CommandError
from images.recipe.inherit import find, load
from images.recipe.recipe import Recipe
from tests.unit.images.test_graph import Told

REPOSITORY = Path(__file__).parents[3]
MIRROR = Mirror("http://m.example/d", ("a",), ("main",), b"key", ".asc", ("1" * 64,), 1000)
IDENTITIES = "from images.build.plan import all_steps\nfor step in all_steps(): print(step.name, step.identity())"
GREETING = '''"""Writes who is greeted, below what *before* wrote."""

from dataclasses import dataclass
from pathlib import Path

from images.build.context import Context
from images.build.step import Product, Products, Say, Step


@dataclass(frozen=True, slots=True)
class Inputs:
    whom: str
    before: Product | None


def greeting(inputs: Inputs, out: Path, say: Say) -> None:
    say("greeting")
    (out / "letter").write_text(f"hello {inputs.whom}")


def _inputs(context: Context, products: Products) -> Inputs:
    return Inputs(context.recipe.name, products.get("before"))


STEP = Step(
    "greeting",
    1,
    greeting,
    outputs=("letter",),
    inputs=_inputs,
    needs=(NEEDS),
    applies=lambda context: context.recipe.budget_mib < 4096,
    tools=lambda _: ("greeter",),
    artifacts={"greeting": "letter"},
    packages=("greetings",),
    removes=("/usr/share/greetings",),
)
'''


def context(name: str = "debian-12-minimal", **changed: object) -> Context:
    recipe: Recipe = load(find(name)).model_copy(update=changed)
    return Context(recipe, {}, (MIRROR,))


@pytest.fixture
def greeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts the file of a step more into a folder beside those that there are; `needs` as Python writes it."""

    def add(needs: str = "") -> None:
        folder = tmp_path / "steps"
        folder.mkdir()
        (folder / "greeting.py").write_text(GREETING.replace("NEEDS", needs))
        monkeypatch.setattr(steps, "__path__", [*steps.__path__, str(folder)])
        monkeypatch.setattr(tools, "_version", lambda tool: f"{tool} 1")
        monkeypatch.delitem(sys.modules, f"{steps.__name__}.greeting", raising=False)

    return add


def test_a_file_more_is_a_step_more(greeting: Callable[[str], None], tmp_path: Path) -> None:
    before, _ = plan(context())
    greeting("")
    chosen, told = plan(context())
    assert {step.name for step in chosen} - {step.name for step in before} == {"greeting"}
    assert (told.installs, told.removes) == (("greetings",), ("/usr/share/greetings",))
    assert told.tools["greeter"] == "greeter 1"
    (step,) = (step for step in chosen if step.name == "greeting")
    assert ("greeting", 1, step.identity()) in told.steps
    progress = Told()
    with Cache(tmp_path / "cache") as cache, Graph(cache, progress) as graph:
        start(graph, (step,), told)
    assert (graph.products["greeting"] / "letter").read_text() == "hello debian-12-minimal"
    assert progress.calls == [("begin", "greeting"), ("greeting", "greeting"), ("end", "greeting")]
    assert step.key(step.inputs(told, {}), {"greeter": "2"}) != graph.products["greeting"].key
    assert step.key(step.inputs(told, {}), {"greeter": "greeter 1"}) == graph.products["greeting"].key


def test_a_step_comes_after_what_it_needs_and_before_what_needs_it(greeting: Callable[[str], None]) -> None:
    greeting("'kernel',")
    names = [step.name for step in all_steps()]
    assert names[:5] == ["bootstrap", "dracut", "drivers", "configure", "kernel"]
    assert "greeting" in names[4:]


def test_a_step_that_does_not_apply_adds_nothing(greeting: Callable[[str], None]) -> None:
    greeting("")
    chosen, told = plan(context(budget_mib=4096))
    assert "greeting" not in {step.name for step in chosen}
    assert (told.installs, told.removes, "greeter" in told.tools) == ((), (), False)
    assert "greeting" in {name for name, _, _ in told.steps}, "it is of the recipe's identity all the same"


def test_a_need_that_nobody_meets_is_named(greeting: Callable[[str], None]) -> None:
    greeting("'toaster',")
    with pytest.raises(ValueError, match=r"^images/build/steps/greeting\.py needs 'toaster': there is no such step$"):
        all_steps()


def test_a_step_is_named_as_its_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "STEP", kernel.STEP)
    with pytest.raises(ValueError) as caught:
        all_steps()
    assert str(caught.value) == ("images/build/steps/root.py has a step named 'kernel': both must have the same name")


@pytest.mark.parametrize(
    ("recipe", "changed", "there", "absent"),
    [
        ("debian-12-minimal", {}, {"mksquashfs", "libzstd", "mmdebstrap", "zstd"}, {"mkfs.erofs", "osslsigncode"}),
        ("debian-12-minimal", {"root_format": "erofs"}, {"mkfs.erofs", "liblz4"}, {"mksquashfs"}),
    ],
)
def test_tools_are_those_that_the_recipe_calls_for(
    recipe: str, changed: dict[str, object], there: set[str], absent: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def version(tool: str) -> str:
        asked.append(tool)
        return f"{tool} 1"

    monkeypatch.setattr(tools, "_version", version)
    _, told = plan(context(recipe, **changed))
    assert there <= told.tools.keys() and not absent & told.tools.keys()
    assert len(asked) == len(set(asked)), "each is asked once"


def test_another_version_of_a_tool_is_another_key() -> None:
    one, two = ({"mksquashfs": f"mksquashfs version {number}"} for number in (1, 2))
    inputs = root.Inputs(Product("k", Path("/nowhere")), "dev", 1000)
    assert root.STEP.key(inputs, one) != root.STEP.key(inputs, two)


def identities(folder: Path) -> dict[str, str]:
    """Of all steps, as a build in that copy of the sources would have them."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", IDENTITIES], cwd=folder, capture_output=True, text=True, check=True
    )
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for name in ("images", "tokens"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def before(copy: Path) -> dict[str, str]:
    return identities(copy)


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        pytest.param(
            "images/formats/tree.py",
            "        for item in folder.iterdir():\n            remove(",
            "        for item in ():\n            remove(",
            {"dracut", "configure", "kernel", "documents", "gather", "initrd", "gates", "uki", "manifest"},
            id="a function's body, one import away",
        ),
        pytest.param(
            "images/formats/elf.py",
            "import struct\n",
            "import struct  # ours\n",
            {
                "drivers",
                "documents",
                "kernel",
                "gather",
                "initrd",
                "gates",
                "uki",
                "manifest",
            },  # gather → build.initrd → formats.modules → formats.elf
            id="three imports deep",
        ),
        pytest.param(
            "images/build/gates/checks/skew.py",
            "add the package",
            "take the package",
            {"gates"},
            id="what is loaded by name",
        ),
        pytest.param("images/node/initrd/init", "#!/bin/sh", "#!/bin/sh -e", {"gather"}, id="data"),
        pytest.param("images/errors.py", "A tool failed.", "A tool has failed.", set(), id="an exception"),
    ],
)
def test_a_change_of_code_is_another_step(
    copy: Path, before: dict[str, str], file: str, old: str, new: str, changed: set[str]
) -> None:
    """Really altered, in a copy of the tree: which steps are done again, and which are not."""
    path = copy / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        after = identities(copy)
    finally:
        path.write_text(text)
    assert {name for name in after if after[name] != before[name]} == changed


def test_exceptions_are_modules_that_there_are_each_with_a_reason() -> None:
    assert all(reason for reason in EXCEPTIONS.values())
    for name in EXCEPTIONS:
        assert (REPOSITORY / f"{name.replace('.', '/')}.py").is_file(), name
    assert not EXCEPTIONS.keys() & sources(["images.build.steps.bootstrap"]).keys()


def test_relative_imports_are_followed() -> None:
    assert "images.node.agent.tpm_command" in sources(["images.node.agent.tpm"])
    assert "tokens.errors" in sources(["images.node.agent.tpm"])


def test_every_gate_is_found_by_its_file() -> None:
    there = {path.stem for path in Path(checks.__path__[0]).glob("*.py")} - {"__init__"}
    assert {gate.name for gate in all_gates()} == there


def test_a_tool_that_is_not_there_has_no_version_and_the_step_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("images.run.PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tools.versions(["mksquashfs", "cyclonedx-python-lib"])["mksquashfs"] == ""


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo 'mkfs.erofs (erofs-utils) 1.8.1'; echo 'available: lz4'", "mkfs.erofs (erofs-utils) 1.8.1"),
        ("echo 'mkfs.erofs: no such option' >&2; seq 99 >&2; echo 'mkfs.erofs 1.5'; exit 1", "mkfs.erofs 1.5"),
        ("echo 'kmod version 30'; echo '+ZSTD +XZ'", "kmod version 30"),
    ],
)
def test_a_version_is_what_the_tool_says_of_itself_and_not_of_its_usage(
    script: str, version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("images.run.PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "mkfs.erofs", script)
    assert tools.versions(["mkfs.erofs"]) == {"mkfs.erofs": version}


def test_a_tool_that_tells_no_version_is_not_taken_for_one_that_never_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("images.run.PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "mkfs.erofs", "echo usage; exit 1")
    with pytest.raises(CommandError, match="it does not say of which version it is"):
        tools.versions(["mkfs.erofs"])


def test_what_a_program_is_linked_with_has_a_version_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", told) for told in tools.versions(["libzstd", "liblz4"]).values())
    monkeypatch.setitem(tools._SHARED, "libzstd", ("libnothing.so.1", "f"))
    assert tools.versions(["libzstd"]) == {"libzstd": ""}
