"""Models are built when they are first used (`images.values.strict.Strict`): here, all of them are."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import images
import ipxe
import netboot
import tokens
from images.values.strict import Strict


def models(base: type[Strict] = Strict) -> Iterator[type[Strict]]:
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def test_every_model_can_be_built_so_that_none_is_found_wanting_by_whoever_uses_it_first() -> None:
    for package in (images, ipxe, netboot, tokens):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.startswith(("images.node", "images.recipes")) and not module.name.endswith("__main__"):
                import_module(module.name)
    ours = {model for model in models() if model.__module__.partition(".")[0] != "tests"}
    assert len(ours) > 250
    for model in ours:
        assert model.model_rebuild(force=True, raise_errors=True), model


def test_a_model_that_cannot_be_built_is_no_fault_of_its_import() -> None:
    class Wanting(Strict):
        what: "NoSuchName"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(NameError, match="NoSuchName"):
        Wanting.model_rebuild(raise_errors=True)
