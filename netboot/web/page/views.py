"""What there is to see: each asks the API and hands its answer to a template."""

from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import quote

from flask import current_app, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from netboot.machines.found import reported, summary
from netboot.web.fleet_shapes import LONGEST_TEXT
from netboot.web.page import shapes
from netboot.web.page.client import Api, ApiError
from netboot.web.page.words import MEMBERS
from netboot.web.pages import LONGEST

PAGE = 50
"""Machines on one page of a list."""
DISCOVERED = 200
RACKS = 400
NOT_BACK, UNDER_WAY = ("failed", "skipped"), ("out", "assigned")
"""Of a rollout's machines: those that somebody has to look at, those that are under way; in this order."""
MOST_TOLD = 100
EVENTS = 30
FILTERS = ("status", "reason", "step", "rack", "image", "class", "cause", "text")


def fleet() -> str:
    """The fleet at a glance, and what is not in order of the service or stands still by somebody's word."""
    api = of_page()
    told, ready = api.get("/v1/fleet"), api.ready()
    drawn = shapes.racks(told["racks"][:RACKS])
    wrong = [(name, each) for name, each in ready["details"].items() if not each["ok"]]
    stopped: dict[str, Any] = {"may_act": api.get("/v1/freeze")["may_act"]}
    try:  # whoever looks after a fleet needs the rest of it all the more where this cannot be told
        pause = api.get("/v1/remedies/pause")["pause"]
        stopped["pause"] = pause if pause and pause["stands"] else None
    except ApiError as error:
        if error.status != 503:
            raise
        stopped["untold"] = error.message
    shown = {"racks": drawn, "left": len(told["racks"]) - len(drawn), "ready": ready["ready"], "wrong": wrong}
    return render_template("fleet.html", fleet=told, **shown, **stopped)


def machines() -> str:
    """A page of those that fit; the last, where a list has become shorter than it was."""
    api = of_page()
    asked = {name: request.args.get(name, "")[:LONGEST_TEXT] for name in FILTERS}
    number = request.args.get("page", "1")
    page = max(int(number), 1) if number.isascii() and number.isdigit() and len(number) < 6 else 1
    told = _part(api, asked, page)
    pages = max(1, -(-told["of"] // PAGE))
    if page > pages:
        told, page = _part(api, asked, pages), pages
    classes = api.get("/v1/inventory")["classes"] if request.headers.get("HX-Request") != "true" else []
    return render_template("machines.html", told=told, asked=asked, page=page, pages=pages, classes=classes)


def _part(api: Api, asked: Mapping[str, str], page: int) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/fleet/machines", **asked, limit=PAGE, offset=(page - 1) * PAGE)
    return found


def machine(name: str) -> str:
    """One machine."""
    api, path = of_page(), f"/v1/machines/{quote(name, safe='')}"
    found, explained = api.get(path), api.get(f"{path}/explain")
    events = api.get(f"{path}/events", limit=EVENTS)
    said = api.get("/v1/fleet/machines", name=name)
    told = {"summary": next(iter(said["machines"]), None), "problem": said["problem"]}
    return render_template("machine.html", machine=found, explained=explained, events=events, **told)


def boot(boot: str) -> str:
    """One boot, to scale."""
    found = of_page().get(f"/v1/boots/{quote(boot, safe='')}")
    bars = shapes.waterfall(found["spans"], found["goes_on"])
    return render_template("boot.html", boot=found, bars=bars, wide=shapes.WIDE, problem=_not_of_now())


def _not_of_now() -> str:
    """Why what is known of machines may not be so any more, as the fleet's page has it; "": it is looked at."""
    try:
        return str(of_page().get("/v1/fleet/machines", limit=1)["problem"])
    except ApiError as error:  # what is told of a boot or a rollout by itself is told all the same
        if error.status != 503:
            raise
        return error.message


def rollouts() -> str:
    """All of them."""
    return render_template("rollouts.html", rollouts=of_page().get("/v1/rollouts")["rollouts"])


def rollout(number: int) -> str | Response:
    """One, with its machines: drawn all of them, told those that did not come back, and those that are under way."""
    api, path, after = of_page(), f"/v1/rollouts/{number}", request.args.get("continue", "")[:LONGEST]
    found = api.get(path, members="false")
    try:
        asked = {"state": ",".join((*NOT_BACK, *UNDER_WAY)), "limit": MOST_TOLD, "continue": after}
        told = api.get(f"{path}/members", **asked)
    except ApiError as error:
        if error.status != 400 or not after:
            raise
        return redirect(url_for("rollout", number=number), 303)
    drawn = shapes.racks([by_status(rack) for rack in found["by_rack"][:RACKS]])
    apart, moving = ([each for each in told["members"] if each["state"] in some] for some in (NOT_BACK, UNDER_WAY))
    shown = {"apart": apart, "moving": moving, "more": told["continue"], "first": not after, "problem": _not_of_now()}
    return render_template("rollout.html", rollout=found, racks=drawn, **shown)


def by_status(rack: Mapping[str, Any]) -> dict[str, Any]:
    """A rack of a rollout as the fleet has racks."""
    runs = [{**run, "status": MEMBERS.get(run["state"], "unknown")} for run in rack["runs"]]
    return {**rack, "runs": shapes.merged(runs)}


def discovered() -> str | Response:
    """Who asked and may not boot, the latest first."""
    after = request.args.get("continue", "")[:LONGEST]
    try:
        listed = of_page().get("/v1/discovered", limit=DISCOVERED, **{"continue": after})
    except ApiError as error:
        if error.status != 400 or not after:
            raise
        return redirect(url_for("discovered"), 303)  # what it goes on after has gone
    found = listed["discovered"]
    made_of = {each["key"]: "; ".join(filter(None, (summary(each["hardware"]), reported(each)))) for each in found}
    shown = {
        "found": found,
        "first": not after,
        "older": listed["continue"],
        "told": request.args.get("declared", "")[:63],
    }
    return render_template("discovered.html", made_of=made_of, **shown)


def images() -> str:
    """Channels, what machines run, and what lies in the store."""
    api = of_page()
    channels, stored = api.get("/v1/channels")["channels"], api.get("/v1/images")["images"]
    return render_template("images.html", channels=channels, fleet=api.get("/v1/fleet"), stored=stored)


def image(digest: str) -> str:
    """One image: what it is made of, and, beside another, what differs."""
    api, path = of_page(), f"/v1/images/{quote(digest, safe='')}"
    found, packages = api.get(path), api.get(f"{path}/packages")["packages"]
    others = [each for each in api.get("/v1/images")["images"] if each["image"] != found["image"]]
    beside = request.args.get("with", "")
    differs = api.get(f"{path}/diff", **{"with": beside}) if beside else None
    told = {"packages": packages, "others": others, "beside": beside, "differs": differs}
    return render_template("image.html", image=found, **told)


def sbom(digest: str) -> Response:
    """An image's bill of materials, as a file."""
    api, path = of_page(), f"/v1/images/{quote(digest, safe='')}"
    found, (body, kind) = api.get(path), api.document(f"{path}/sbom")
    answer = Response(body, content_type=kind)
    answer.headers.set("Content-Disposition", "attachment", filename=f"{found['name']}-{digest[:12]}.cdx.json")
    return answer


def audit() -> str:
    """Who did what, the newest first."""
    api = of_page()
    asked = {"machine": request.args.get("machine", ""), "continue": request.args.get("continue", "")}
    told = api.get("/v1/audit", **asked, limit=PAGE)
    return render_template("audit.html", told=told, machine=request.args.get("machine", ""))


def of_page() -> Api:
    """By which this page asks."""
    return cast("Api", current_app.extensions["netboot.page"])


ROUTES: tuple[tuple[str, str, Callable[..., str | Response]], ...] = (
    ("/page/", "fleet", fleet),
    ("/page/machines", "machines", machines),
    ("/page/machines/<name>", "machine", machine),
    ("/page/boots/<boot>", "boot", boot),
    ("/page/rollouts", "rollouts", rollouts),
    ("/page/rollouts/<int:number>", "rollout", rollout),
    ("/page/discovered", "discovered", discovered),
    ("/page/images", "images", images),
    ("/page/images/<digest>", "image", image),
    ("/page/images/<digest>/sbom", "sbom", sbom),
    ("/page/audit", "audit", audit),
)
