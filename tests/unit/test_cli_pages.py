"""`netboot docs` prints the pages and sections that messages name."""

import netboot.cli.pages as pages
from tests.commands import Ran, Run


def test_a_page_is_printed_by_any_name_that_a_message_has(run: Run) -> None:
    whole = (pages.folder() / "store.md").read_text()
    for name in ("store", "store.md", "docs/store.md"):
        assert run("docs", name) == Ran(0, whole, "")
    listed = run("docs").out.splitlines()
    assert (listed[0], "  docs/store.md" in listed) == (str(pages.folder()), True)


def test_a_section_is_printed_with_what_is_below_it(run: Run) -> None:
    said = run("docs", "docs/inventory.md#imported-from-a-list").out
    assert said.startswith("## Imported from a list\n")
    assert "\n### Redfish\n" in said
    assert "\n## " not in said
    text = (pages.folder() / "dhcp.md").read_text()
    commented = next(part for part in text.split("\n## ")[1:] if "\n# " in part)
    name = pages.slug(commented.partition("\n")[0])
    assert run("docs", f"dhcp#{name}").out.rstrip("\n") == f"## {commented}".rstrip("\n")


def test_what_is_no_page_or_section_is_unknown(run: Run) -> None:
    assert run("docs", "stor") == Ran(3, "", "Error: there is no page stor\nRemedy: name store\n")
    assert run("docs", "../README") == Ran(3, "", "Error: there is no page ../README\nRemedy: name README\n")
    said = "Error: the page store has no section nowhere\nRemedy: `netboot docs store` prints all of it\n"
    assert run("docs", "store#nowhere") == Ran(3, "", said)
