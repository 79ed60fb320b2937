"""Every answer of the management API against what its document says of it."""

import re
from functools import cache
from typing import Any
from urllib.parse import quote

import jsonschema_rs
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from netboot.web.app import api_document
from netboot.web.errors import MEDIA_TYPE


class DeclaredClient(FlaskClient):
    """Fails at an answer that the document does not allow: its status, its kind, its shape."""

    def open(self, *arguments: Any, **keywords: Any) -> TestResponse:
        answer = super().open(*arguments, **keywords)
        schema = self._schema(answer)
        if schema is not None and answer.mimetype in ("application/json", MEDIA_TYPE):
            fault = next(iter(validator(schema).iter_errors(answer.get_json())), None)
            assert fault is None, f"{answer.request.method} {answer.request.path}: {fault}"
        return answer

    def _schema(self, answer: TestResponse) -> str | None:
        """Where the document has it; None: it says nothing, for nothing is there."""
        method, path = answer.request.method, answer.request.path
        if path == "/" or path.startswith("/page"):
            return None  # for people
        try:
            rule, _ = self.application.url_map.bind("localhost").match(path, method, return_rule=True)
        except HTTPException:
            assert answer.mimetype == MEDIA_TYPE
            return "/components/schemas/Problem"
        if method not in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            return None
        template = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(rule))
        answers = api_document()["paths"][template][method.lower()]["responses"]
        status = str(answer.status_code)
        assert status in answers, f"{method} {template} does not say that it answers {status}: {answer.text}"
        if status == "304":
            return None  # it has no content
        kinds = answers[status]["content"]
        assert answer.mimetype in kinds, f"{method} {template}: {status} is {answer.mimetype}, not {list(kinds)}"
        parts = ("paths", template, method.lower(), "responses", status, "content", str(answer.mimetype), "schema")
        return "".join("/" + quote(part.replace("~", "~0").replace("/", "~1")) for part in parts)


@cache
def validator(pointer: str) -> Any:
    """Of one place in the document."""
    return jsonschema_rs.Draft202012Validator({"$ref": f"#{pointer}", **api_document()})
