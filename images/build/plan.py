"""Which steps there are, in which order: every file of `images/build/steps/` has a `STEP`, which says what it needs."""

import importlib
import pkgutil
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

from images.build import steps, tools
from images.build.context import Context
from images.build.step import Step


def all_steps() -> tuple[Step[Any], ...]:
    """Every step whose products are cached, each after those that it needs; of several that could be next, by name.

    Raises:
        ValueError: a step is not named as its file is, or needs one that there is not. graphlib.CycleError.
    """
    known = {info.name: _step(info.name) for info in pkgutil.iter_modules(steps.__path__)}
    for step in known.values():
        for need in step.needs:
            if need not in known:
                raise ValueError(f"images/build/steps/{step.name}.py needs {need!r}: there is no such step")
    sorter = TopologicalSorter({name: step.needs for name, step in known.items()})
    sorter.prepare()
    order: list[Step[Any]] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [known[name] for name in ready]
        sorter.done(*ready)
    return tuple(order)


def _step(name: str) -> Step[Any]:
    step: Step[Any] = importlib.import_module(f"{steps.__name__}.{name}").STEP
    if step.name != name:
        raise ValueError(f"images/build/steps/{name}.py has a step named {step.name!r}: both must have the same name")
    return step


def plan(context: Context) -> tuple[tuple[Step[Any], ...], Context]:
    """The steps that apply to a build, in order, and the context with what they add to it. Each tool is asked once."""
    every = all_steps()
    context = replace(context, steps=tuple((step.name, step.version, step.identity()) for step in every))
    chosen = tuple(step for step in every if step.applies(context))
    return chosen, replace(
        context,
        installs=tuple(name for step in chosen for name in step.packages),
        removes=tuple(path for step in chosen for path in step.removes),
        tools=tools.versions(tool for step in chosen for tool in step.tools(context)),
    )
