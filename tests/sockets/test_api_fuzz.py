"""Whatever the document allows, and much that it does not, gets an answer that the document declares, of viewers and of
admins; none is a defect."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from netboot.lifecycle.phases import Phase as Reached
from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from netboot.web.app import api_document
from netboot.web.dependencies import EXTENSION
from tests.records import boot_id, event, script
from tests.sites import add_image
from tests.sockets.api import Api
from tests.sockets.api import given as given_token

EXAMPLES = 12
"""Of each operation: as the document allows, and as it does not; of things that there are, and others."""
OPEN = ("/healthz", "/readyz")
"""They take any parameter: a load balancer's are its own."""
THERE = {"boot": boot_id("gpu-001", 1), "number": 1, "digest": "a" * 64, "token_id": "abcdef"}
"""Variables of paths that lead somewhere; `name` is a machine's or a channel's."""
REFUSED = ((403, "not-allowed"), (404, "not-found"))
"""What a viewer who acts is told; the latter where what was drawn is no path of the API."""
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
TEMPLATES = sorted(
    (path, method)
    for path, operations in api_document()["paths"].items()
    for method in operations
    if path != "/metrics"
)


class Site:
    """With a machine, a boot that failed and an image; who looks, and who may do everything."""

    def __init__(self, root: Path) -> None:
        self.api = Api(root)
        add_image(self.api.config)
        self.api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Reached.FAILED)]))
        self.dependencies = self.api.client.application.extensions[EXTENSION]
        self.headers = {
            Role.VIEWER: {"Authorization": f"Bearer {given_token(self.api, 'wall', Role.VIEWER)}"},
            Role.ADMIN: self.api.authorised,
        }


class Shared:
    """What is costly to make: the document as schemathesis reads it, and a site that nothing is done to."""

    def __init__(self, root: Path) -> None:
        self.site = Site(root)
        self.application = self.site.api.client.application
        headers = self.site.api.authorised
        self.schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", self.application, headers=headers)
        del self.schema.raw_schema["security"]  # what is drawn is what is asked, and not again and again with no token

    def serve(self, site: Site) -> None:
        """From now on the application is this site's."""
        self.application.extensions[EXTENSION] = site.dependencies


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize(("path", "method"), TEMPLATES, ids=[f"{method} {path}" for path, method in TEMPLATES])
def test_the_document_says_what_is_answered(tmp_path: Path, shared: Shared, path: str, method: str) -> None:
    acts = method != "get"
    site = Site(tmp_path) if acts else shared.site
    shared.serve(site)
    site.api.stopping = path.endswith("/watch")  # a watch ends
    operation = shared.schema[path][method.upper()]
    name = "stable" if "channels" in path else "gpu-001"
    there = {key: value for key, value in ({"name": name} | THERE).items() if f"{{{key}}}" in path}
    modes = [GenerationMode.POSITIVE] if path in OPEN else list(GenerationMode)
    cases = [operation.as_strategy(mode) for mode in modes]
    cases += [operation.as_strategy(mode, path_parameters=there) for mode in modes if there]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(cases), st.sampled_from([Role.ADMIN] if acts else [Role.VIEWER, Role.ADMIN]))
    def use(case: Any, role: Role) -> None:
        if acts:
            refused = case.call(headers=site.headers[Role.VIEWER])
            assert (refused.status_code, refused.json()["code"]) in REFUSED, case.as_curl_command()
            case.validate_response(refused, checks=CHECKS)
        answer = case.call(headers=site.headers[role])
        assert answer.status_code not in (401, 500), case.as_curl_command()
        case.validate_response(answer, checks=CHECKS)

    use()
