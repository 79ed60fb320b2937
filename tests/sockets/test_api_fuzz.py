"""Whatever the document allows, and much that it does not, gets an answer that the document declares, of viewers and of
admins; none is a defect. And each operation does at least once what it is for, by what the document allows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS as ALL
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoverageScenario
from schemathesis.specs.openapi import checks

from netboot.lifecycle.roles import Role
from netboot.web.app import api_document
from netboot.web.dependencies import EXTENSION
from tests.journeys import ROOT
from tests.sockets.fuzzed import FuzzedSite

EXAMPLES = 12
"""Of each operation: as the document allows, and as it does not; of things that there are, and others."""
REACHING = 6
"""Of each operation, of things that there are, as the document allows."""
OPEN = ("/healthz", "/readyz")
"""They take any parameter: a load balancer's are its own."""
REFUSED = ((403, "not-allowed"), (404, "not-found"))
"""What a viewer who acts is told; the latter where what was drawn is no path of the API."""
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
OF_METHODS = [checks.missing_required_header, checks.unsupported_method, checks.allow_header_conformance]
"""They look at what only the walk through all places of a request asks."""
LEFT_OUT = {
    "use_after_free": (
        "what is deleted here is a machine's declaration and a token: the document links neither to what made it",
        "test_declared.py::test_from_nothing_to_nothing",
    ),
    "ensure_resource_availability": (
        "the document has no links, by which alone the check knows that what is asked for was made just now",
        "test_declared.py::test_from_nothing_to_nothing",
    ),
    "object_level_authorization": (
        "nothing is of one operator alone: whoever has the role may see and change all of the site's",
        "test_access.py::test_every_route_as_every_role",
    ),
}
"""Checks of schemathesis that are not made, why, and the test of `tests/sockets` that is there instead."""
TEMPLATES = sorted(
    (path, method)
    for path, operations in api_document()["paths"].items()
    for method in operations
    if path != "/metrics"
)
NAMES = [f"{method} {path}" for path, method in TEMPLATES]


class Shared:
    """What is costly to make: the document as schemathesis reads it, and a site that nothing is done to."""

    def __init__(self, root: Path) -> None:
        self.site = FuzzedSite(root)
        self.application = self.site.api.client.application
        self.guarded, self.open = self._schema(), self._schema()
        del self.open.raw_schema["security"]  # what is drawn is what is asked, and not again and again with no token

    def _schema(self) -> Any:
        headers = self.site.api.authorised
        schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", self.application, headers=headers)
        _pairs_as_lists(schema.raw_schema)
        return schema

    def serve(self, site: FuzzedSite, path: str) -> FuzzedSite:
        """From now on the application is this site's."""
        self.application.extensions[EXTENSION] = site.dependencies
        site.api.stopping = path.endswith("/watch")  # a watch ends
        return site


def _pairs_as_lists(part: Any) -> None:
    """What schemathesis 4.32 makes of `prefixItems` in an answer is no schema of OpenAPI 3.1 (`items: [...]`). Ours are
    of two things of one kind, with `minItems` and `maxItems`: for those `items` says the same."""
    if isinstance(part, dict) and "prefixItems" in part:
        first, second = part.pop("prefixItems")
        assert (first, part["minItems"], part["maxItems"]) == (second, 2, 2)
        part["items"] = first
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _pairs_as_lists(each)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.mktemp("site"))


def draw(use: Callable[[Any, Role], None], examples: int, cases: SearchStrategy[Any], roles: list[Role]) -> None:
    """The same each time."""
    how = {"derandomize": True, "database": None, "phases": [Phase.generate]}
    drawn = given(cases, st.sampled_from(roles))(use)
    settings(max_examples=examples, suppress_health_check=list(HealthCheck), **how)(drawn)()  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "method"), TEMPLATES, ids=NAMES)
def test_the_document_says_what_is_answered(tmp_path: Path, shared: Shared, path: str, method: str) -> None:
    acts = method != "get"
    site = shared.serve(FuzzedSite(tmp_path) if acts else shared.site, path)
    operation = shared.open[path][method.upper()]
    there = site.places(path)
    modes = [GenerationMode.POSITIVE] if path in OPEN else list(GenerationMode)
    cases = [operation.as_strategy(mode) for mode in modes]
    cases += [operation.as_strategy(mode, path_parameters=there) for mode in modes if there]
    roles = [Role.ADMIN] if acts else [Role.VIEWER, Role.ADMIN]
    statuses: list[int] = []

    def use(case: Any, role: Role, *more: Any) -> None:
        if acts:
            refused = case.call(headers=site.headers[Role.VIEWER])
            assert (refused.status_code, refused.json()["code"]) in REFUSED, case.as_curl_command()
            case.validate_response(refused, checks=CHECKS)
        answer = case.call(headers=site.headers[role])
        assert answer.status_code != 401, case.as_curl_command()
        case.validate_response(answer, checks=[*CHECKS, *more])
        statuses.append(answer.status_code)

    def reach(case: Any, role: Role) -> None:
        use(site.reaching(case), role, checks.positive_data_acceptance)

    draw(reach, REACHING, operation.as_strategy(GenerationMode.POSITIVE), roles)
    assert any(200 <= status < 300 for status in statuses), f"never done, only refused: {statuses}"
    draw(lambda case, role: use(case, role), EXAMPLES, st.one_of(cases), roles)


def walked(shared: Shared, site: FuzzedSite, path: str, method: str) -> Iterator[tuple[Any, bool]]:
    """Each place of a request once with each kind of what may and may not be there, and each method that the operation
    has not; of things that there are, and with a token, unless these are what is wrong. True: it lacks the token."""
    schema, operation = shared.guarded, shared.guarded[path][method.upper()]
    config = schema.config.generation_for(operation=operation)
    schema.coverage_unexpected_methods_seen.clear()  # of another operation of that path
    for case in schema.iter_coverage_cases(
        operation=operation, generation_modes=list(GenerationMode), generation_config=config
    ):
        about = case.meta.phase.data
        nobody = about.scenario is CoverageScenario.MISSING_PARAMETER and about.parameter == "Authorization"
        if not nobody:
            case.headers.update(site.api.authorised)
        if about.parameter_location is not ParameterLocation.PATH:
            case.path_parameters = site.places(path)
        yield case, nobody


@pytest.mark.parametrize(("path", "method"), TEMPLATES, ids=NAMES)
def test_each_place_of_a_request_is_looked_at(tmp_path: Path, shared: Shared, path: str, method: str) -> None:
    site = shared.serve(FuzzedSite(tmp_path) if method != "get" else shared.site, path)
    guarded = "security" not in api_document()["paths"][path][method]
    known = nobodys = methods = 0
    for case, nobody in walked(shared, site, path, method):
        answer = case.call()
        assert (answer.status_code == 401) == nobody, case.as_curl_command()
        first = guarded and not known and answer.status_code == 200
        more = [*OF_METHODS, checks.ignored_auth] if first else OF_METHODS
        case.validate_response(answer, checks=[*CHECKS, *more], headers=site.api.authorised)
        known, nobodys = known + first, nobodys + nobody
        methods += answer.status_code == 405
    assert (nobodys > 0, methods > 0) == (guarded, True)


def test_no_check_is_left_out_without_a_word() -> None:
    made = {each.__name__ for each in (*CHECKS, *OF_METHODS, checks.positive_data_acceptance, checks.ignored_auth)}
    assert made.isdisjoint(LEFT_OUT)
    assert made | LEFT_OUT.keys() == set(ALL.get_all_names())
    for _, there in LEFT_OUT.values():
        file, _, name = there.partition("::")
        assert f"\ndef {name}(" in (ROOT / "tests" / "sockets" / file).read_text(encoding="utf-8")
