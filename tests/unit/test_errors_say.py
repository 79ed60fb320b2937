"""What is wrong, and what to do: of every class of errors, wherever it is raised; of every problem of the API; of every
answer to a machine. Classes, places and rows are found by looking, none is listed here."""

import ast
import json
import re

import pytest
from flask import Flask, g
from werkzeug.exceptions import HTTPException, default_exceptions

from images.values.strict import Fault, FaultsError
from netboot import credentials
from netboot.boot import answers
from netboot.cli import joining
from netboot.cli.ends import HERE, end_of, ended
from netboot.failures import TABLE, UNEXPECTED, Answer
from netboot.web import errors
from netboot.web.join import server as join_server
from tests.error_words import cause, raised, refused, remedy, unreal, whole
from tests.unit.test_errors_end import caught, classes, trees


def test_every_error_is_raised_with_its_cause() -> None:
    """Without one is what ends nothing: no class of it has an end, and somebody catches it by its name."""
    silent = {kind.__name__ for kind in classes() if end_of(kind) is None} & caught()
    wrong = [
        f"{place}: {name}: {said[0] if said else 'not a word'}"
        for place, name, said in raised()
        if (not said and name not in silent) or (said and said[0] is not None and not cause(said[0]))
    ]
    assert wrong == []


def test_every_class_has_a_remedy_that_can_be_followed() -> None:
    """By the class itself, or the nearest of its bases; commands, options, pages and sections are looked up."""
    ends = {kind: end for kind in classes() if (end := end_of(kind)) is not None}
    assert len(ends) > 60
    assert [f"{kind.__name__}: {end.remedy}" for kind, end in ends.items() if not remedy(end.remedy)] == []


def test_what_errors_send_their_reader_to_is_there() -> None:
    wrong = [(place, unreal(text)) for place, _, said in raised() for text in said if text and unreal(text)]
    assert wrong == []


def test_the_remedies_that_commands_add_say_what_to_do() -> None:
    """Their second argument; those without are in `test_errors_end`."""
    second = [(place, said[1]) for place, _, said in raised() if re.match("netboot/cl", place) and len(said) > 1]
    assert len([text for _, text in second if text]) > 40
    assert [(place, text) for place, text in second if text and text.strip("{}") and not remedy(text)] == []


def test_what_was_given_wrongly_is_told_with_what_is_right() -> None:
    """By every class of click's for it, and by what the client refuses before anything is asked."""
    found = [*refused()]
    assert len(found) > 45
    wrong = [
        (place, text)
        for place, text, code in found
        if not cause(text) or unreal(text) or not (remedy(text) or re.search(r"\{(remedy|said)\b", code))
    ]
    assert wrong == []


def test_faults_of_a_site_say_what_to_do() -> None:
    """What `config check` and `doctor` find: in the words, or in what is put into them, by its name."""
    wrong = []
    for path, tree in trees():
        for function in ast.walk(tree) if path.parent.name == "cli" else ():
            if not isinstance(function, ast.FunctionDef):
                continue
            said = {
                target.id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Fault":
                    message = node.args[-1]
                    message = said.get(message.id, message) if isinstance(message, ast.Name) else message
                    text, put_in = whole(message), ast.unparse(message).lower()
                    if not re.search(PUT_IN, put_in) and not (text and remedy(text)):
                        wrong.append(f"{path.name}:{node.lineno}: {text or put_in}")
    assert wrong == []


def test_faults_of_files_say_what_is_wrong_and_lead_nowhere() -> None:
    """Of the inventory and of the configuration: a fault has its place, and says there what has to be so."""
    found = [
        (f"{path.name}:{node.lineno}", text)
        for path, tree in trees()
        if path.parent.name == "machines" or path.name.startswith(("config", "addresses"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args
        for name in [node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")]
        if name in ("fault", "ValueError") and (text := whole(node.args[0])) is not None
    ]
    assert len(found) > 60
    assert [(place, text) for place, text in found if not cause(text) or unreal(text)] == []


PUT_IN = r"remedy|cure|renew|_new\b|in_words|unread|put_it_there|str\(misfit\)"
"""What has a remedy in it, or is one; a misfit ends with its own."""


@pytest.mark.parametrize("text", [credentials.PUT_IT_THERE, joining._RENEW, joining._NEW])
def test_what_is_put_into_faults_says_what_to_do(text: str) -> None:
    assert remedy(text)


@pytest.mark.parametrize("kind", list(HERE), ids=lambda kind: str(kind.__name__))
def test_a_key_in_backticks_is_no_remedy(kind: type[Exception]) -> None:
    """It was taken for one: `join` in the words, and the remedy of the class was left out."""
    bare = kind.__new__(kind)
    bare.args = ("netboot.yaml has no `join`",)
    end = HERE[kind]
    assert ended(bare) == (f"netboot.yaml has no `join`\nRemedy: {end.remedy}", end.status)


def test_what_this_file_calls_a_cause_and_a_remedy() -> None:
    assert [cause(text) for text in ("", "failed", "an error", "x", "Internal error", "it failed.")] == [False] * 6
    assert cause("no key") and cause("{} is damaged") and cause("{}: {}")
    assert [remedy(text) for text in ("", "it has none", "`management.tls`", "the message says it")] == [False] * 4
    assert not remedy("run `netboot key make`") and not remedy("`netboot key create --fast`")
    assert not remedy("docs/nowhere.md") and not remedy("docs/store.md#nowhere")
    assert remedy("`netboot key create --keys K` makes one") and remedy("docs/store.md#keys")


# Problems of the operators' API, and what machines are answered.

ROWS = [*{id(row): row for row in (*TABLE.values(), UNEXPECTED)}.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.code))
def test_every_row_has_a_cause_and_a_remedy(row: Answer) -> None:
    assert cause(row.message) or row is UNEXPECTED
    assert remedy(row.remedy)


@pytest.fixture
def app() -> Flask:
    """It fails as it is asked to, and answers as both listeners do."""
    app = Flask("failing")
    app.testing = False
    app.before_request(lambda: g.__setattr__("request_id", "r-1"))
    return app


@pytest.mark.parametrize("kind", [*default_exceptions.values()], ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("form", [errors.problem, errors.plain], ids=["operators", "machines"])
def test_what_http_refuses_has_a_cause_and_a_remedy(app: Flask, kind: type[HTTPException], form: errors.Form) -> None:
    def fails() -> str:
        raise kind

    app.add_url_rule("/x", view_func=fails)
    errors.install(app, "docs/http-management.md" if form is errors.problem else "docs/http-join.md", form)
    answer = app.test_client().get("/x")
    value = json.loads(answer.data)
    said = value if form is errors.problem else value["error"]
    assert answer.status_code == kind.code
    assert cause(said["detail" if form is errors.problem else "message"])
    assert remedy(said["remedy"]), said["remedy"]
    again = "again" in said["remedy"]
    assert again == (answer.status_code in (408, 429, 502, 503, 504)), "only where the same may come to something else"


WHAT = "the disk of gpu-001 is full"


def made(kind: type[Exception]) -> Exception:
    """One that says `WHAT`."""
    if issubclass(kind, FaultsError):
        return kind([Fault("list", 3, "", WHAT)])
    try:
        error = kind(WHAT)
    except TypeError:  # it finds its words by itself
        error = kind.__new__(kind)
        error.args = (WHAT,)
    assert WHAT in str(error)
    return error


@pytest.mark.parametrize("kind", list(TABLE), ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("form", [errors.problem, errors.plain], ids=["operators", "machines"])
def test_every_error_is_answered_with_a_cause_and_a_remedy(
    app: Flask, kind: type[Exception], form: errors.Form
) -> None:
    """Over both of Flask's listeners, and as the boot servers say it in a line."""
    error = made(kind)

    def fails() -> str:
        raise error

    app.add_url_rule("/x", view_func=fails)
    errors.install(app, form=form)
    value = json.loads(app.test_client().get("/x").data)
    said = value if form is errors.problem else value["error"]
    row = TABLE[kind]
    assert said["detail" if form is errors.problem else "message"] == (str(error) if row.says else row.message)
    assert said["remedy"] == row.remedy
    answer, _ = answers.failure(error)
    assert isinstance(answer.body, bytes)
    assert answer.body.decode() == f"{str(error) if row.says else row.message}; {row.remedy}\n"


def test_what_a_boot_server_refuses_by_itself_has_a_cause_and_a_remedy() -> None:
    """What is no exception: lines of text for people at a console, and for who asks by hand."""
    said = []
    for path, tree in trees():
        for node in ast.walk(tree) if path.parent.name == "boot" else ():
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in ("text", "answers.text", "_refused") and len(node.args) > 1:
                status, line = node.args[0], node.args[1]
                if isinstance(status, ast.Constant) and isinstance(status.value, int) and status.value >= 400:
                    said.append((f"{path.name}:{node.lineno}", whole(line) or ast.unparse(line)))
    assert len(said) > 8
    assert [(place, text) for place, text in said if not (cause(text) and remedy(text))] == []


def test_what_join_refuses_by_itself_has_a_remedy() -> None:
    assert [text for _, text in join_server._REFUSALS.values() if not remedy(text)] == []


def test_a_list_with_faults_has_each_of_them_and_a_remedy(app: Flask) -> None:
    def fails() -> str:
        raise errors.FaultyError([Fault("list", 3, "mac", "is here twice")])

    app.add_url_rule("/x", view_func=fails)
    errors.install(app)
    said = json.loads(app.test_client().get("/x").data)
    assert said["faults"] == ["list:3: mac: is here twice"]
    assert cause(said["detail"]) and remedy(said["remedy"])
