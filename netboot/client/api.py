"""What the API can be asked, by its parts. Made from the API's document by `make client`: alter nothing
here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from netboot.client.base import Api, Asker, pages, segment
from netboot.client.watch import Watch

if TYPE_CHECKING:
    from netboot.client import models


class AppApi(Api):
    """Of `app`."""

    def document(self) -> dict[str, Any]:
        """This document."""
        answer: dict[str, Any] = self._asker.ask("GET", "/v1/openapi.json")
        return answer


class AuditsApi(Api):
    """Of `audits`."""

    def list(
        self, *, limit: int | None = None, continue_: str | None = None, machine: str | None = None
    ) -> models.Audit:
        """Acts, and what was refused."""
        answer: models.Audit = self._asker.ask(
            "GET", "/v1/audit", query={"limit": limit, "continue": continue_, "machine": machine}
        )
        return answer

    def each(self, *, limit: int = 500, machine: str | None = None) -> Iterator[models.RecordShown]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, machine=machine, continue_=after), "audit")


class BootsApi(Api):
    """Of `boots`."""

    def list_discovered(self, *, limit: int | None = None, continue_: str | None = None) -> models.DiscoveredMachines:
        """Machines that asked and may not boot, the latest seen first."""
        answer: models.DiscoveredMachines = self._asker.ask(
            "GET", "/v1/discovered", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each_discovered(self, *, limit: int = 500) -> Iterator[models.Sighting]:
        """All that `list_discovered` lists, page by page, `limit` in one; FailedError where what a page ended with
        has gone."""
        return pages(lambda after: self.list_discovered(limit=limit, continue_=after), "discovered")

    def list(
        self, *, limit: int | None = None, continue_: str | None = None, machine: str | None = None
    ) -> models.Boots:
        """Boots and claims, the newest first."""
        answer: models.Boots = self._asker.ask(
            "GET", "/v1/boots", query={"limit": limit, "continue": continue_, "machine": machine}
        )
        return answer

    def each(self, *, limit: int = 500, machine: str | None = None) -> Iterator[models.TraceShown]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, machine=machine, continue_=after), "boots")

    def get(self, boot: str) -> models.BootShown:
        """One boot's trace, with the crashes that it found and that ended it, and the last lines of its console."""
        answer: models.BootShown = self._asker.ask("GET", f"/v1/boots/{segment(boot)}")
        return answer


class ChannelsApi(Api):
    """Of `channels`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.Channels:
        """Every channel of the inventory."""
        answer: models.Channels = self._asker.ask("GET", "/v1/channels", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 500) -> Iterator[models.ChannelState]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "channels")

    def get(self, name: str) -> models.ChannelState:
        """One channel."""
        answer: models.ChannelState = self._asker.ask("GET", f"/v1/channels/{segment(name)}")
        return answer

    def move(
        self, name: str, body: models.Move, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.Moved:
        """Let the channel point to another image: written into the store, in force within a second."""
        answer: models.Moved = self._asker.ask(
            "PUT",
            f"/v1/channels/{segment(name)}",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DeclaredApi(Api):
    """Of `declared`."""

    def overview(self) -> models.InventoryDescribed:
        """Whether the inventory is the API's to write, and what machines may refer to."""
        answer: models.InventoryDescribed = self._asker.ask("GET", "/v1/inventory")
        return answer

    def list(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> models.DeclaredMachines:
        """Machines as they are declared, also where that is not in force; those that are selected."""
        answer: models.DeclaredMachines = self._asker.ask(
            "GET",
            "/v1/inventory/machines",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[models.DeclaredListed]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(
            lambda after: self.list(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "machines",
        )

    def import_(self, body: models.DeclaringMany, *, idempotency_key: str | None = None) -> models.DeclaredMany:
        """Declare many at once, in one file: all, or none and every fault."""
        answer: models.DeclaredMany = self._asker.ask(
            "POST", "/v1/inventory/machines", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def get(self, name: str) -> models.DeclaredShown:
        """One, as it is declared."""
        answer: models.DeclaredShown = self._asker.ask("GET", f"/v1/inventory/machines/{segment(name)}")
        return answer

    def put(
        self,
        name: str,
        body: models.Declaring,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.DeclaredActed:
        """Declare a machine, or declare it otherwise."""
        answer: models.DeclaredActed = self._asker.ask(
            "PUT",
            f"/v1/inventory/machines/{segment(name)}",
            headers={"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete(
        self,
        name: str,
        *,
        reason: str | None = None,
        dry_run: Literal["true", "false"] | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.DeclaredActed:
        """Declare a machine no more."""
        answer: models.DeclaredActed = self._asker.ask(
            "DELETE",
            f"/v1/inventory/machines/{segment(name)}",
            query={"reason": reason, "dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )
        return answer

    def declare(
        self, mac: str, body: models.DeclaringFound, *, idempotency_key: str | None = None
    ) -> models.DeclaredActed:
        """Declare a machine that asked and may not boot, by what it said of itself."""
        answer: models.DeclaredActed = self._asker.ask(
            "POST", f"/v1/discovered/{segment(mac)}/declare", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class DeleteNodeApi(Api):
    """Of `delete_node`."""

    def delete_node(
        self, name: str, body: models.Deleting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.Deleted:
        """Delete the Node that the machine has now, by its uid; where somebody cordoned it, its machine is held
        first."""
        answer: models.Deleted = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/delete-node",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DrainsApi(Api):
    """Of `drains`."""

    def list(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> models.Drains:
        """All that stand, and how far each is."""
        answer: models.Drains = self._asker.ask(
            "GET",
            "/v1/drains",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[models.DrainShown]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(
            lambda after: self.list(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "drains",
        )

    def get(self, name: str) -> models.DrainsOf:
        """What stands of one machine, and what ended, the latest first."""
        answer: models.DrainsOf = self._asker.ask("GET", f"/v1/machines/{segment(name)}/drains")
        return answer

    def drain(
        self, name: str, body: models.DrainsOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.DrainActed:
        """Move its Pods away."""
        answer: models.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/drain",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def reboot(
        self, name: str, body: models.DrainsOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.DrainActed:
        """Move its Pods away, then reboot it."""
        answer: models.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/reboot",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def undrain(
        self, name: str, body: models.Undraining, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.DrainActed:
        """Let it take Pods again, and forget the order to reboot, if it was not taken yet."""
        answer: models.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/undrain",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DriftApi(Api):
    """Of `drift`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.Drifts:
        """All of them, in the order of the inventory."""
        answer: models.Drifts = self._asker.ask("GET", "/v1/drift", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 500) -> Iterator[models.Drift]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "drift")


class EnrolmentsApi(Api):
    """Of `enrolments`."""

    def list(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> models.Enrolments:
        """Machines' enrolments, by name."""
        answer: models.Enrolments = self._asker.ask(
            "GET",
            "/v1/enrolments",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[models.EnrolmentView]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(
            lambda after: self.list(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "enrolments",
        )

    def import_(
        self,
        body: str,
        *,
        reason: str | None = None,
        dry_run: Literal["true", "false"] | None = None,
        file: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Imported:
        """A list of EKs as CSV: all, or none and every fault."""
        answer: models.Imported = self._asker.ask(
            "POST",
            "/v1/enrolments",
            query={"reason": reason, "dry_run": dry_run, "file": file},
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def get(self, name: str) -> models.EnrolmentShown:
        """One machine's, with its history."""
        answer: models.EnrolmentShown = self._asker.ask("GET", f"/v1/machines/{segment(name)}/enrolment")
        return answer

    def enroll(
        self,
        name: str,
        body: models.EnrolmentsWindow,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.EnrolmentActed:
        """Open a window in which its TPM may enrol on first use."""
        answer: models.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/enroll",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def approve(
        self, name: str, body: models.Approval, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.EnrolmentActed:
        """Let the TPM that was shown join; or bring a retired machine back, as it was before."""
        answer: models.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/approve",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def release(
        self, name: str, body: models.Plain, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.EnrolmentActed:
        """What its Lease says binds nobody any more."""
        answer: models.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/release",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def replace(
        self, name: str, body: models.Replacement, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.EnrolmentActed:
        """Its TPM has left it: that one is refused for ever, and a window opens for the next, if it could use one."""
        answer: models.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/replace",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def retire(
        self, name: str, body: models.Plain, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.EnrolmentActed:
        """Out of service: no tokens, no renewals."""
        answer: models.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/retire",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class EventsApi(Api):
    """Of `events`."""

    def list(self, name: str, *, limit: int | None = None, continue_: str | None = None) -> models.Events:
        """The latest of a machine's timeline, in order."""
        answer: models.Events = self._asker.ask(
            "GET", f"/v1/machines/{segment(name)}/events", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each(self, name: str, *, limit: int = 500) -> Iterator[models.Event]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(name, limit=limit, continue_=after), "events")

    def watch(self, name: str, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` and heartbeats, as of boots; without `since` from now on."""
        return self._asker.follow(f"/v1/machines/{segment(name)}/events/watch", query={"since": since})


class FleetApi(Api):
    """Of `fleet`."""

    def summary(self) -> models.Fleet:
        """Counts by status, reason, step, image and rack, who wants to be seen first, and rollouts under way."""
        answer: models.Fleet = self._asker.ask("GET", "/v1/fleet")
        return answer

    def machines(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        name: str | None = None,
        status: Literal["late", "ill", "held", "coming", "in-service", "off", "unknown"] | None = None,
        reason: str | None = None,
        step: str | None = None,
        rack: str | None = None,
        image: str | None = None,
        class_: str | None = None,
        cause: str | None = None,
        text: str | None = None,
        offset: int | None = None,
    ) -> models.FleetMachines:
        """Machines that fit all filters: late and ill ones first, of these the longest so."""
        answer: models.FleetMachines = self._asker.ask(
            "GET",
            "/v1/fleet/machines",
            query={
                "limit": limit,
                "continue": continue_,
                "name": name,
                "status": status,
                "reason": reason,
                "step": step,
                "rack": rack,
                "image": image,
                "class": class_,
                "cause": cause,
                "text": text,
                "offset": offset,
            },
        )
        return answer

    def each_machines(
        self,
        *,
        limit: int = 500,
        name: str | None = None,
        status: Literal["late", "ill", "held", "coming", "in-service", "off", "unknown"] | None = None,
        reason: str | None = None,
        step: str | None = None,
        rack: str | None = None,
        image: str | None = None,
        class_: str | None = None,
        cause: str | None = None,
        text: str | None = None,
        offset: int | None = None,
    ) -> Iterator[models.MachineEntry]:
        """All that `machines` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(
            lambda after: self.machines(
                limit=limit,
                name=name,
                status=status,
                reason=reason,
                step=step,
                rack=rack,
                image=image,
                class_=class_,
                cause=cause,
                text=text,
                offset=offset,
                continue_=after,
            ),
            "machines",
        )


class FreezeApi(Api):
    """Of `freeze`."""

    def get(self) -> models.FreezeShown:
        """As it is now."""
        answer: models.FreezeShown = self._asker.ask("GET", "/v1/freeze")
        return answer

    def freeze(
        self, body: models.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.FreezeShown:
        """From now on nothing that acts by itself begins anything."""
        answer: models.FreezeShown = self._asker.ask(
            "POST", "/v1/freeze", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def unfreeze(
        self, body: models.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.FreezeShown:
        """The freeze ends."""
        answer: models.FreezeShown = self._asker.ask(
            "POST", "/v1/unfreeze", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class ImagesApi(Api):
    """Of `images`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.Images:
        """Every image of the store."""
        answer: models.Images = self._asker.ask("GET", "/v1/images", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 500) -> Iterator[models.ImageListed]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "images")

    def get(self, digest: str) -> models.ImageShown:
        """One image, by its whole digest."""
        answer: models.ImageShown = self._asker.ask("GET", f"/v1/images/{segment(digest)}")
        return answer

    def packages(self, digest: str, *, limit: int | None = None, continue_: str | None = None) -> models.PackagesShown:
        """What it is made of."""
        answer: models.PackagesShown = self._asker.ask(
            "GET", f"/v1/images/{segment(digest)}/packages", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each_packages(self, digest: str, *, limit: int = 500) -> Iterator[models.PackageShown]:
        """All that `packages` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.packages(digest, limit=limit, continue_=after), "packages")

    def sbom(self, digest: str) -> dict[str, Any]:
        """Its bill of materials (CycloneDX), byte by byte as it was signed."""
        answer: dict[str, Any] = self._asker.ask("GET", f"/v1/images/{segment(digest)}/sbom")
        return answer

    def diff(self, digest: str, *, with_: str) -> models.ImagesDifference:
        """What is otherwise in it than in an older one."""
        answer: models.ImagesDifference = self._asker.ask(
            "GET", f"/v1/images/{segment(digest)}/diff", query={"with": with_}
        )
        return answer

    def uses(self, digest: str) -> models.Uses:
        """Channels that give it to machines, machines that boot it next, and those that run it; whether it is here
        or not."""
        answer: models.Uses = self._asker.ask("GET", f"/v1/images/{segment(digest)}/uses")
        return answer


class IntentsApi(Api):
    """Of `intents`."""

    def list(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> models.Intents:
        """All that stands, by machine."""
        answer: models.Intents = self._asker.ask(
            "GET",
            "/v1/intents",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[models.Intent]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(
            lambda after: self.list(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "intents",
        )

    def get(self, name: str) -> models.IntentsOf:
        """What stands of one machine, and what was ordered of it, the latest first."""
        answer: models.IntentsOf = self._asker.ask("GET", f"/v1/machines/{segment(name)}/intents")
        return answer

    def hold(
        self, name: str, body: models.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """Its node takes no new work."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/hold",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def unhold(
        self, name: str, body: models.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """Held no more, whoever held it."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/unhold",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def quarantine(
        self, name: str, body: models.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """It does not join."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/quarantine",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def readmit(
        self, name: str, body: models.Readmitting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """Out of quarantine, whoever put it there."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/readmit",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def accept(
        self, name: str, body: models.Accepting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """Its gate opens in spite of its checks."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/accept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def unaccept(
        self, name: str, body: models.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.IntentActed:
        """Accepted no more, whoever accepted it."""
        answer: models.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/unaccept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class InventoryApi(Api):
    """Of `inventory`."""

    def diff(self) -> models.Compared:
        """What is declared now against what is in force."""
        answer: models.Compared = self._asker.ask("GET", "/v1/inventory/diff")
        return answer

    def accept(
        self, body: models.Accept, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.Accepted:
        """Let the inventory that waits come into force, if it is the one that was shown."""
        answer: models.Accepted = self._asker.ask(
            "POST",
            "/v1/inventory/accept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def list(
        self,
        kind: Literal["profiles", "channels", "classes", "racks", "maintenance"],
        *,
        limit: int | None = None,
        continue_: str | None = None,
    ) -> models.DeclaredItems:
        """What is declared of a kind, also where that is not in force."""
        answer: models.DeclaredItems = self._asker.ask(
            "GET", f"/v1/inventory/{segment(kind)}", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each(
        self, kind: Literal["profiles", "channels", "classes", "racks", "maintenance"], *, limit: int = 500
    ) -> Iterator[models.DeclaredListed]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(kind, limit=limit, continue_=after), "items")

    def get(
        self, kind: Literal["profiles", "channels", "classes", "racks", "maintenance"], name: str
    ) -> models.DeclaredShown:
        """One, as it is declared."""
        answer: models.DeclaredShown = self._asker.ask("GET", f"/v1/inventory/{segment(kind)}/{segment(name)}")
        return answer

    def put(
        self,
        kind: Literal["profiles", "channels", "classes", "racks", "maintenance"],
        name: str,
        body: models.DeclaringItem,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.DeclaredActed:
        """Declare one, or declare it otherwise."""
        answer: models.DeclaredActed = self._asker.ask(
            "PUT",
            f"/v1/inventory/{segment(kind)}/{segment(name)}",
            headers={"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def delete(
        self,
        kind: Literal["profiles", "channels", "classes", "racks", "maintenance"],
        name: str,
        *,
        reason: str | None = None,
        dry_run: Literal["true", "false"] | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.DeclaredActed:
        """Declare one no more, where nothing refers to it."""
        answer: models.DeclaredActed = self._asker.ask(
            "DELETE",
            f"/v1/inventory/{segment(kind)}/{segment(name)}",
            query={"reason": reason, "dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )
        return answer


class JoinTokensApi(Api):
    """Of `join_tokens`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.TokensShown:
        """What the Leases say of tokens, without their secrets; clusters that cannot tell are named."""
        answer: models.TokensShown = self._asker.ask("GET", "/v1/tokens", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 500) -> Iterator[models.TokenShown]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "tokens")

    def create(
        self, body: models.NewToken, *, idempotency_key: str | None = None
    ) -> models.TokenCreated | models.WindowOpened:
        """A token for one machine and one key (201); without a key, a boot window for that machine (202)."""
        answer: models.TokenCreated | models.WindowOpened = self._asker.ask(
            "POST", "/v1/tokens", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def revoke(self, token_id: str, *, idempotency_key: str | None = None) -> models.TokenRevoked:
        """Delete a token's Secret."""
        answer: models.TokenRevoked = self._asker.ask(
            "DELETE", f"/v1/tokens/{segment(token_id)}", headers={"Idempotency-Key": idempotency_key}
        )
        return answer


class LoginsApi(Api):
    """Of `logins`."""

    def get(self) -> models.LoginOffered:
        """What `netboot login` has to know before anybody is known: nothing of it is secret."""
        answer: models.LoginOffered = self._asker.ask("GET", "/v1/login")
        return answer

    def whoami(self) -> models.Known:
        """Who asks, with which role, and until when."""
        answer: models.Known = self._asker.ask("GET", "/v1/whoami")
        return answer


class MachinesApi(Api):
    """Of `machines`."""

    def list(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> models.Machines:
        """Machines of the inventory, each with its current boot; those that are selected."""
        answer: models.Machines = self._asker.ask(
            "GET",
            "/v1/machines",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[models.MachineListed]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(
            lambda after: self.list(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "machines",
        )

    def get(self, name: str) -> models.MachineShown:
        """One machine: what it would be served now, and its latest boots."""
        answer: models.MachineShown = self._asker.ask("GET", f"/v1/machines/{segment(name)}")
        return answer

    def explain(
        self, name: str, *, boot: str | None = None
    ) -> models.Explained | models.ExplainedInPart | models.PastExplained:
        """What this machine gets, however it is recognised, and why; and how far the boot is that it has. With
        `boot`: what that boot got then."""
        answer: models.Explained | models.ExplainedInPart | models.PastExplained = self._asker.ask(
            "GET", f"/v1/machines/{segment(name)}/explain", query={"boot": boot}
        )
        return answer

    def explain_claim(
        self,
        *,
        mac: str | None = None,
        uuid: str | None = None,
        serial: str | None = None,
        arch: str | None = None,
        platform: str | None = None,
    ) -> models.ClaimExplained:
        """What whoever claims this would get, and why. Nothing is recorded."""
        answer: models.ClaimExplained = self._asker.ask(
            "GET", "/v1/explain", query={"mac": mac, "uuid": uuid, "serial": serial, "arch": arch, "platform": platform}
        )
        return answer


class MetricsApi(Api):
    """Of `metrics`."""

    def metrics(self) -> str:
        """Every metric of the service, in Prometheus' text format."""
        answer: str = self._asker.ask("GET", "/metrics", text=True)
        return answer


class NodeHealthApi(Api):
    """Of `node_health`."""

    def get(self, name: str) -> models.MachineHealth:
        """The report of its current boot, and what the inventory expects now."""
        answer: models.MachineHealth = self._asker.ask("GET", f"/v1/machines/{segment(name)}/health")
        return answer


class ProofsApi(Api):
    """Of `proofs`."""

    def get(self, boot: str) -> models.SignedProof:
        """The record's text and its signature."""
        answer: models.SignedProof = self._asker.ask("GET", f"/v1/boots/{segment(boot)}/proof")
        return answer


class ReadinessApi(Api):
    """Of `readiness`."""

    def healthz(self) -> models.Healthy:
        """This process answers."""
        answer: models.Healthy = self._asker.ask("GET", "/healthz")
        return answer

    def readyz(self) -> models.Readiness:
        """Whether machines can boot now; and in every case, detail by detail, what is not as it should be."""
        answer: models.Readiness = self._asker.ask("GET", "/readyz", also=(503,))
        return answer


class RemediesApi(Api):
    """Of `remedies`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.Remedies:
        """Whether anything may begin, who is not well and what is done about it, and the latest remedies."""
        answer: models.Remedies = self._asker.ask("GET", "/v1/remedies", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 200) -> Iterator[models.Remedy]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "remedies")

    def get(self, number: int) -> models.RemedyShown:
        """One, with what was at hand of the machine's boot."""
        answer: models.RemedyShown = self._asker.ask("GET", f"/v1/remedies/{segment(number)}")
        return answer

    def get_pause(self) -> models.Paused:
        """Whether remedies are paused by somebody's word."""
        answer: models.Paused = self._asker.ask("GET", "/v1/remedies/pause")
        return answer

    def pause(
        self, body: models.RemediesOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.PauseActed:
        """Nothing begins any more."""
        answer: models.PauseActed = self._asker.ask(
            "POST", "/v1/remedies/pause", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def resume(
        self, body: models.RemediesOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.PauseActed:
        """Remedies may begin again; what was found until now is no matter of the fleet any more."""
        answer: models.PauseActed = self._asker.ask(
            "POST", "/v1/remedies/resume", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class RenamingApi(Api):
    """Of `renaming`."""

    def renamed(
        self, name: str, body: models.Renaming, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.DeclaredActed:
        """Give a machine another name. The one that it had becomes a former name."""
        answer: models.DeclaredActed = self._asker.ask(
            "POST",
            f"/v1/inventory/machines/{segment(name)}/rename",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class RolloutsApi(Api):
    """Of `rollouts`."""

    def list(self, *, limit: int | None = None, continue_: str | None = None) -> models.Rollouts:
        """The newest first."""
        answer: models.Rollouts = self._asker.ask("GET", "/v1/rollouts", query={"limit": limit, "continue": continue_})
        return answer

    def each(self, *, limit: int = 200) -> Iterator[models.RolloutShown]:
        """All that `list` lists, page by page, `limit` in one; FailedError where what a page ended with has gone."""
        return pages(lambda after: self.list(limit=limit, continue_=after), "rollouts")

    def start(
        self, body: models.Start, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.RolloutStarted | models.RolloutPlanned:
        """Begin one, or say what it would be."""
        answer: models.RolloutStarted | models.RolloutPlanned = self._asker.ask(
            "POST", "/v1/rollouts", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def get(self, number: int, *, members: bool | None = None) -> models.RolloutDetail:
        """One, with its machines and what was done to it."""
        answer: models.RolloutDetail = self._asker.ask(
            "GET", f"/v1/rollouts/{segment(number)}", query={"members": members}
        )
        return answer

    def members(
        self, number: int, *, limit: int | None = None, continue_: str | None = None, state: str | None = None
    ) -> models.RolloutMembers:
        """Its machines, in pages; those in some states alone."""
        answer: models.RolloutMembers = self._asker.ask(
            "GET",
            f"/v1/rollouts/{segment(number)}/members",
            query={"limit": limit, "continue": continue_, "state": state},
        )
        return answer

    def each_members(self, number: int, *, limit: int = 500, state: str | None = None) -> Iterator[models.MemberShown]:
        """All that `members` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.members(number, limit=limit, state=state, continue_=after), "members")

    def pause(
        self, number: int, body: models.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.RolloutActed:
        """Nobody's turn comes any more."""
        answer: models.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/pause",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def resume(
        self, number: int, body: models.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.RolloutActed:
        """It goes on."""
        answer: models.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/resume",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def undo(
        self, number: int, body: models.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> models.RolloutActed:
        """Machines boot what they had."""
        answer: models.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/undo",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class WatchApi(Api):
    """Of `watch`."""

    def watch(self, *, machine: str | None = None, since: int | None = None) -> Watch:
        """Lines `{"event": {…}}` and `{"heartbeat": moment}`, and `{"gap": words}` where some are missing; without
        `since` from now on."""
        return self._asker.follow("/v1/boots/watch", query={"machine": machine, "since": since})


class WatchesApi(Api):
    """Of `watches`."""

    def audit_records(self, *, since: int | None = None) -> Watch:
        """Lines `{"event": {…}}` with each record of the audit, heartbeats, and `{"gap": words}` where some are
        missing; without `since` from now on."""
        return self._asker.follow("/v1/audit/watch", query={"since": since})

    def fleet_changes(self, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` with what `/v1/fleet` has, now and each time that it is otherwise, and
        heartbeats."""
        return self._asker.follow("/v1/fleet/watch", query={"since": since})

    def discovered_changes(self, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` with the latest hundred that asked and may not boot, now and each time that there
        is anything new, and heartbeats."""
        return self._asker.follow("/v1/discovered/watch", query={"since": since})

    def rollout_changes(self, number: int, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` with the rollout, without its machines, now and each time that it is otherwise,
        and heartbeats."""
        return self._asker.follow(f"/v1/rollouts/{segment(number)}/watch", query={"since": since})

    def drain_changes(self, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` with all drains that stand, now and each time that they are otherwise, and
        heartbeats."""
        return self._asker.follow("/v1/drains/watch", query={"since": since})


class Apis:
    """All of it."""

    def __init__(self, asker: Asker) -> None:
        self.app = AppApi(asker)
        self.audits = AuditsApi(asker)
        self.boots = BootsApi(asker)
        self.channels = ChannelsApi(asker)
        self.declared = DeclaredApi(asker)
        self.delete_node = DeleteNodeApi(asker)
        self.drains = DrainsApi(asker)
        self.drift = DriftApi(asker)
        self.enrolments = EnrolmentsApi(asker)
        self.events = EventsApi(asker)
        self.fleet = FleetApi(asker)
        self.freeze = FreezeApi(asker)
        self.images = ImagesApi(asker)
        self.intents = IntentsApi(asker)
        self.inventory = InventoryApi(asker)
        self.join_tokens = JoinTokensApi(asker)
        self.logins = LoginsApi(asker)
        self.machines = MachinesApi(asker)
        self.metrics = MetricsApi(asker)
        self.node_health = NodeHealthApi(asker)
        self.proofs = ProofsApi(asker)
        self.readiness = ReadinessApi(asker)
        self.remedies = RemediesApi(asker)
        self.renaming = RenamingApi(asker)
        self.rollouts = RolloutsApi(asker)
        self.watch = WatchApi(asker)
        self.watches = WatchesApi(asker)
