"""Declaring a machine that asked and may not boot: a form, or the YAML to copy where its inventory is not ours to write
or another role would be needed."""

from typing import Any
from urllib.parse import quote

from flask import abort, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from netboot.lifecycle.roles import Role
from netboot.machines.found import declaration, in_words, summary
from netboot.web.page.client import ApiError
from netboot.web.page.views import of_page

LISTED = 10_000
FIELDS = ("name", "profile", "class", "rack", "seen", "reason")


def shown(mac: str) -> str:
    """The form of one."""
    return _form(mac, {})


def declared(mac: str) -> Response:
    """What the form sent. What is refused is said in it, and nothing that was typed is lost."""
    said = {field: request.form.get(field, "").strip()[:500] for field in FIELDS}
    try:
        of_page().post(f"/v1/discovered/{quote(mac, safe='')}/declare", said)
    except ApiError as error:
        if error.status == 401:
            raise
        return Response(_form(mac, said, error), error.status, mimetype="text/html")
    return redirect(url_for("discovered", declared=said["name"]), 303)


def _form(mac: str, said: dict[str, str], error: ApiError | None = None) -> str:
    api = of_page()
    found = next((each for each in api.get("/v1/discovered", limit=LISTED)["discovered"] if each["mac"] == mac), None)
    if found is None:
        abort(404, "no machine with that MAC asked lately and may not boot")
    inventory, role = api.get("/v1/inventory"), api.get("/v1/whoami")["role"]
    kept = inventory["read_only"] or ("" if role == Role.ADMIN else f"that needs the role admin, and you are {role}")
    yaml = _yaml(found, inventory["profiles"]) if kept else ""
    told = {"found": found, "inventory": inventory, "kept": kept, "yaml": yaml, "made_of": summary(found["hardware"])}
    told |= {"by": in_words(found["match"])}
    return render_template("declare.html", **told, said=said, error=error)


def _yaml(found: dict[str, Any], profiles: list[str]) -> str:
    """To be pasted into `machines:` of a file."""
    from netboot.machines.written import text_of

    profile = profiles[0] if profiles else "PROFILE"
    return text_of("machine", declaration("NAME", profile, found))
