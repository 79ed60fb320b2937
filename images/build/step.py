"""What a build step is, and what makes two runs of it the same run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from images.build.code import code_digest
from images.build.context import Context
from images.values.digests import PLACE, digest, file_digest, plain, tree_digest

I = TypeVar("I")  # noqa: E741 - inputs
Say = Callable[[str], None]
"""Takes one line about what is going on, for people."""


@dataclass(frozen=True, slots=True)
class Product:
    """What a step made: the files under `path`; `key` stands for their content."""

    key: str
    path: Path = field(metadata=PLACE)

    def __truediv__(self, name: str) -> Path:
        return self.path / name


Products = Mapping[str, Product]
"""By the names of the steps that made them; a step that does not apply made none."""


NO_TOOLS: Mapping[str, str] = MappingProxyType({})


def _always(_context: Context) -> bool:
    return True


def _none(_context: Context) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Step(Generic[I]):
    """One step: `run(inputs, out, say)` writes `outputs` (names of files or folders) into the empty folder `out`.

    A step is a function of its inputs, of the code that `run` imports and of the tools that it names: nothing else that
    could change what it writes may be looked at. docs/contributing/build-step.md: how to add one.
    """

    name: str
    version: int
    run: Callable[[I, Path, Say], None]
    outputs: tuple[str, ...]
    inputs: Callable[[Context, Products], I]
    """What `run` gets: of what was known before the first step, and of the products of `needs`."""
    needs: tuple[str, ...] = ()
    """Names of the steps that come before it; those among them that do not apply are not waited for."""
    applies: Callable[[Context], bool] = _always
    tools: Callable[[Context], tuple[str, ...]] = _none
    """Programs and libraries whose version may change the bytes that it writes (`images.build.tools`)."""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """Artifacts of the image, by the manifest's names, and which file of the product each is, where there is one."""
    data: tuple[Path, ...] = ()
    """Files and folders of ours that it reads and that are not Python."""
    loads: tuple[str, ...] = ()
    """Packages whose modules it imports by name, as gates are."""
    packages: tuple[str, ...] = ()
    """Packages that the image's tree must have for it, besides the recipe's."""
    removes: tuple[str, ...] = ()
    """Paths of the image that only it needs: they do not stay in the root."""

    def identity(self) -> str:
        """Hash of the step itself: name, version, outputs, all code that it imports, and data that it reads."""
        code = code_digest(self.run, self.loads)
        return digest([self.name, self.version, list(self.outputs), code, [tree_digest(path) for path in self.data]])

    def tool_versions(self, context: Context) -> dict[str, str]:
        """Of its own tools, by name, what they said of their versions."""
        return {tool: context.tools[tool] for tool in self.tools(context)}

    def key(self, inputs: I, tools: Mapping[str, str] = NO_TOOLS) -> str:
        """The cache key: hash of the step, of its inputs and of its tools' versions."""
        return digest([self.identity(), plain(inputs), dict(tools)])


def by_content(product: Product, name: str) -> Product:
    """A product of which only the file `name` counts: what is made of that file is made anew when its bytes change."""
    return Product(file_digest(product / name), product.path)
