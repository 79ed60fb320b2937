"""What the API can be asked, by rooms. Made from the API's document by `make client`: alter nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from netboot.client.room import Asker, Room, pages, segment
from netboot.client.watch import Watch

if TYPE_CHECKING:
    from netboot.client import shapes


class AuditsRoom(Room):
    """Of `audits`."""

    def listed(
        self, *, machine: str | None = None, limit: int | None = None, before: int | None = None
    ) -> shapes.Audit:
        """Acts, and what was refused."""
        answer: shapes.Audit = self._asker.ask(
            "GET", "/v1/audit", query={"machine": machine, "limit": limit, "before": before}
        )
        return answer


class BootsRoom(Room):
    """Of `boots`."""

    def discovered(self, *, limit: int | None = None, continue_: str | None = None) -> shapes.DiscoveredMachines:
        """Machines that asked and may not boot, the latest seen first."""
        answer: shapes.DiscoveredMachines = self._asker.ask(
            "GET", "/v1/discovered", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each_discovered(self, *, limit: int = 500) -> Iterator[shapes.Discovered]:
        """All that `discovered` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.discovered(limit=limit, continue_=after), "discovered")

    def listed(
        self, *, limit: int | None = None, continue_: str | None = None, machine: str | None = None
    ) -> shapes.Boots:
        """Boots and claims, the newest first."""
        answer: shapes.Boots = self._asker.ask(
            "GET", "/v1/boots", query={"limit": limit, "continue": continue_, "machine": machine}
        )
        return answer

    def each(self, *, limit: int = 500, machine: str | None = None) -> Iterator[shapes.TraceShown]:
        """All that `listed` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.listed(limit=limit, machine=machine, continue_=after), "boots")

    def shown(self, boot: str) -> shapes.BootShown:
        """One boot's trace, with the crashes that it found and that ended it."""
        answer: shapes.BootShown = self._asker.ask("GET", f"/v1/boots/{segment(boot)}")
        return answer


class ChannelsRoom(Room):
    """Of `channels`."""

    def listed(self) -> shapes.Channels:
        """Every channel of the inventory."""
        answer: shapes.Channels = self._asker.ask("GET", "/v1/channels")
        return answer

    def shown(self, name: str) -> shapes.ChannelState:
        """One channel."""
        answer: shapes.ChannelState = self._asker.ask("GET", f"/v1/channels/{segment(name)}")
        return answer

    def moved(
        self, name: str, body: shapes.Move, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.Moved:
        """Let the channel point to another image: written into the store, in force within a second."""
        answer: shapes.Moved = self._asker.ask(
            "PUT",
            f"/v1/channels/{segment(name)}",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DeclaredRoom(Room):
    """Of `declared`."""

    def described(self) -> shapes.InventoryDescribed:
        """Whether the inventory is the API's to write, and what machines may refer to."""
        answer: shapes.InventoryDescribed = self._asker.ask("GET", "/v1/inventory")
        return answer

    def listed(self, *, limit: int | None = None, continue_: str | None = None) -> shapes.DeclaredMachines:
        """Machines as they are declared, also where that is not in force."""
        answer: shapes.DeclaredMachines = self._asker.ask(
            "GET", "/v1/inventory/machines", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each(self, *, limit: int = 500) -> Iterator[shapes.DeclaredListed]:
        """All that `listed` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.listed(limit=limit, continue_=after), "machines")

    def shown(self, name: str) -> shapes.DeclaredShown:
        """One, as it is declared."""
        answer: shapes.DeclaredShown = self._asker.ask("GET", f"/v1/inventory/machines/{segment(name)}")
        return answer

    def put(
        self,
        name: str,
        body: shapes.Declaring,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> shapes.DeclaredActed:
        """Declare a machine, or declare it otherwise."""
        answer: shapes.DeclaredActed = self._asker.ask(
            "PUT",
            f"/v1/inventory/machines/{segment(name)}",
            headers={"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def removed(
        self,
        name: str,
        *,
        reason: str | None = None,
        dry_run: Literal["true", "false"] | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> shapes.DeclaredActed:
        """Declare a machine no more."""
        answer: shapes.DeclaredActed = self._asker.ask(
            "DELETE",
            f"/v1/inventory/machines/{segment(name)}",
            query={"reason": reason, "dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )
        return answer

    def discovered(
        self, mac: str, body: shapes.DeclaringFound, *, idempotency_key: str | None = None
    ) -> shapes.DeclaredActed:
        """Declare a machine that asked and may not boot, by the MAC and UUID with which it did."""
        answer: shapes.DeclaredActed = self._asker.ask(
            "POST", f"/v1/discovered/{segment(mac)}/declare", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class DeleteNodeRoom(Room):
    """Of `delete_node`."""

    def delete_node(
        self, name: str, body: shapes.Deleting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.Deleted:
        """Delete the Node that the machine has now, by its uid; where somebody cordoned it, its machine is held
        first."""
        answer: shapes.Deleted = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/delete-node",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DrainsRoom(Room):
    """Of `drains`."""

    def listed(self) -> shapes.Drains:
        """All that stand, and how far each is."""
        answer: shapes.Drains = self._asker.ask("GET", "/v1/drains")
        return answer

    def shown(self, name: str) -> shapes.DrainsOf:
        """What stands of one machine, and what ended, the latest first."""
        answer: shapes.DrainsOf = self._asker.ask("GET", f"/v1/machines/{segment(name)}/drains")
        return answer

    def drain(
        self, name: str, body: shapes.DrainsOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.DrainActed:
        """Move its Pods away."""
        answer: shapes.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/drain",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def reboot(
        self, name: str, body: shapes.DrainsOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.DrainActed:
        """Move its Pods away, then reboot it."""
        answer: shapes.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/reboot",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def undrain(
        self, name: str, body: shapes.Undraining, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.DrainActed:
        """Let it take Pods again, and forget the order to reboot, if it was not taken yet."""
        answer: shapes.DrainActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/undrain",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class DriftRoom(Room):
    """Of `drift`."""

    def shown(self) -> shapes.Drifts:
        """All of them, in the order of the inventory."""
        answer: shapes.Drifts = self._asker.ask("GET", "/v1/drift")
        return answer


class EnrolmentsRoom(Room):
    """Of `enrolments`."""

    def listed(self, *, limit: int | None = None, continue_: str | None = None) -> shapes.Enrolments:
        """Machines' enrolments, by name."""
        answer: shapes.Enrolments = self._asker.ask(
            "GET", "/v1/enrolments", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each(self, *, limit: int = 500) -> Iterator[shapes.EnrolmentView]:
        """All that `listed` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.listed(limit=limit, continue_=after), "enrolments")

    def imported(
        self, body: str, *, reason: str | None = None, file: str | None = None, idempotency_key: str | None = None
    ) -> shapes.Imported:
        """A list of EKs as CSV: all, or none and every fault."""
        answer: shapes.Imported = self._asker.ask(
            "POST",
            "/v1/enrolments",
            query={"reason": reason, "file": file},
            headers={"Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def shown(self, name: str) -> shapes.EnrolmentShown:
        """One machine's, with its history."""
        answer: shapes.EnrolmentShown = self._asker.ask("GET", f"/v1/machines/{segment(name)}/enrolment")
        return answer

    def enroll(
        self, name: str, body: shapes.Window, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.EnrolmentActed:
        """Open a window in which its TPM may enrol on first use."""
        answer: shapes.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/enroll",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def approve(
        self, name: str, body: shapes.Approval, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.EnrolmentActed:
        """Let the TPM that was shown join; or bring a retired machine back, as it was before."""
        answer: shapes.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/approve",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def release(
        self, name: str, body: shapes.Plain, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.EnrolmentActed:
        """What its Lease says binds nobody any more."""
        answer: shapes.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/release",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def replace(
        self, name: str, body: shapes.Replacement, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.EnrolmentActed:
        """Its TPM has left it: that one is refused for ever, and a window opens for the next."""
        answer: shapes.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/replace",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def retire(
        self, name: str, body: shapes.Plain, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.EnrolmentActed:
        """Out of service: no tokens, no renewals."""
        answer: shapes.EnrolmentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/retire",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class EventsRoom(Room):
    """Of `events`."""

    def listed(self, name: str, *, limit: int | None = None, continue_: str | None = None) -> shapes.Events:
        """The latest of a machine's timeline, in order."""
        answer: shapes.Events = self._asker.ask(
            "GET", f"/v1/machines/{segment(name)}/events", query={"limit": limit, "continue": continue_}
        )
        return answer

    def each(self, name: str, *, limit: int = 500) -> Iterator[shapes.Event]:
        """All that `listed` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(lambda after: self.listed(name, limit=limit, continue_=after), "events")

    def watched(self, name: str, *, since: str | None = None) -> Watch:
        """Lines `{"event": {…}}` and heartbeats, as of boots; without `since` from now on."""
        return self._asker.follow(f"/v1/machines/{segment(name)}/events/watch", query={"since": since})


class FleetRoom(Room):
    """Of `fleet`."""

    def summary(self) -> shapes.Fleet:
        """Counts by status, reason, step, image and rack, who wants to be seen first, and rollouts under way."""
        answer: shapes.Fleet = self._asker.ask("GET", "/v1/fleet")
        return answer

    def machines(
        self,
        *,
        name: str | None = None,
        status: Literal["late", "ill", "held", "coming", "in-service", "off", "unknown"] | None = None,
        reason: str | None = None,
        step: str | None = None,
        rack: str | None = None,
        image: str | None = None,
        class_: str | None = None,
        text: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> shapes.FleetMachines:
        """Machines that fit all filters: late and ill ones first, of these the longest so."""
        answer: shapes.FleetMachines = self._asker.ask(
            "GET",
            "/v1/fleet/machines",
            query={
                "name": name,
                "status": status,
                "reason": reason,
                "step": step,
                "rack": rack,
                "image": image,
                "class": class_,
                "text": text,
                "limit": limit,
                "offset": offset,
            },
        )
        return answer


class FreezeRoom(Room):
    """Of `freeze`."""

    def shown(self) -> shapes.FreezeShown:
        """As it is now."""
        answer: shapes.FreezeShown = self._asker.ask("GET", "/v1/freeze")
        return answer

    def frozen(
        self, body: shapes.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.FreezeShown:
        """From now on nothing that acts by itself begins anything."""
        answer: shapes.FreezeShown = self._asker.ask(
            "POST", "/v1/freeze", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def ended(
        self, body: shapes.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.FreezeShown:
        """The freeze ends."""
        answer: shapes.FreezeShown = self._asker.ask(
            "POST", "/v1/unfreeze", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class ImagesRoom(Room):
    """Of `images`."""

    def listed(self) -> shapes.Images:
        """Every image of the store."""
        answer: shapes.Images = self._asker.ask("GET", "/v1/images")
        return answer

    def shown(self, digest: str) -> shapes.ImageShown:
        """One image, by its whole digest."""
        answer: shapes.ImageShown = self._asker.ask("GET", f"/v1/images/{segment(digest)}")
        return answer

    def packages(self, digest: str) -> shapes.PackagesShown:
        """What it is made of."""
        answer: shapes.PackagesShown = self._asker.ask("GET", f"/v1/images/{segment(digest)}/packages")
        return answer

    def sbom(self, digest: str) -> dict[str, Any]:
        """Its bill of materials (CycloneDX), byte by byte as it was signed."""
        answer: dict[str, Any] = self._asker.ask("GET", f"/v1/images/{segment(digest)}/sbom")
        return answer

    def compared(self, digest: str, *, with_: str) -> shapes.ImagesDifference:
        """What is otherwise in it than in an older one."""
        answer: shapes.ImagesDifference = self._asker.ask(
            "GET", f"/v1/images/{segment(digest)}/diff", query={"with": with_}
        )
        return answer

    def used(self, digest: str) -> shapes.Uses:
        """Channels that give it to machines, machines that boot it next, and those that run it; whether it is here
        or not."""
        answer: shapes.Uses = self._asker.ask("GET", f"/v1/images/{segment(digest)}/uses")
        return answer


class IntentsRoom(Room):
    """Of `intents`."""

    def listed(self) -> shapes.Intents:
        """All that stands, by machine."""
        answer: shapes.Intents = self._asker.ask("GET", "/v1/intents")
        return answer

    def shown(self, name: str) -> shapes.IntentsOf:
        """What stands of one machine, and what was ordered of it, the latest first."""
        answer: shapes.IntentsOf = self._asker.ask("GET", f"/v1/machines/{segment(name)}/intents")
        return answer

    def hold(
        self, name: str, body: shapes.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """Its node takes no new work."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/hold",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def unhold(
        self, name: str, body: shapes.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """Held no more, whoever held it."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/unhold",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def quarantine(
        self, name: str, body: shapes.PuttingOn, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """It does not join."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/quarantine",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def readmit(
        self, name: str, body: shapes.Readmitting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """Out of quarantine, whoever put it there."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/readmit",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def accept(
        self, name: str, body: shapes.Accepting, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """Its gate opens in spite of its checks."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/accept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def unaccept(
        self, name: str, body: shapes.Unholding, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.IntentActed:
        """Accepted no more, whoever accepted it."""
        answer: shapes.IntentActed = self._asker.ask(
            "POST",
            f"/v1/machines/{segment(name)}/unaccept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class InventoryRoom(Room):
    """Of `inventory`."""

    def compared(self) -> shapes.Compared:
        """The files as they are now against what is in force."""
        answer: shapes.Compared = self._asker.ask("GET", "/v1/inventory/diff")
        return answer

    def accepted(
        self, body: shapes.Accept, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.Accepted:
        """Let the inventory that waits come into force, if it is the one that was shown."""
        answer: shapes.Accepted = self._asker.ask(
            "POST",
            "/v1/inventory/accept",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class JoinTokensRoom(Room):
    """Of `join_tokens`."""

    def listed(self) -> shapes.TokensShown:
        """What the Leases say of tokens, without their secrets; clusters that cannot tell are named."""
        answer: shapes.TokensShown = self._asker.ask("GET", "/v1/tokens")
        return answer

    def created(
        self, body: shapes.NewToken, *, idempotency_key: str | None = None
    ) -> shapes.TokenCreated | shapes.WindowOpened:
        """A token for one machine and one key (201); without a key, a boot window for that machine (202)."""
        answer: shapes.TokenCreated | shapes.WindowOpened = self._asker.ask(
            "POST", "/v1/tokens", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def revoked(self, token_id: str, *, idempotency_key: str | None = None) -> shapes.TokenRevoked:
        """Delete a token's Secret."""
        answer: shapes.TokenRevoked = self._asker.ask(
            "DELETE", f"/v1/tokens/{segment(token_id)}", headers={"Idempotency-Key": idempotency_key}
        )
        return answer


class LoginsRoom(Room):
    """Of `logins`."""

    def offered(self) -> shapes.LoginOffered:
        """What `netboot login` has to know before anybody is known: nothing of it is secret."""
        answer: shapes.LoginOffered = self._asker.ask("GET", "/v1/login")
        return answer

    def whoami(self) -> shapes.Known:
        """Who asks, with which role, and until when."""
        answer: shapes.Known = self._asker.ask("GET", "/v1/whoami")
        return answer


class MachinesRoom(Room):
    """Of `machines`."""

    def listed(
        self,
        *,
        limit: int | None = None,
        continue_: str | None = None,
        selector: str | None = None,
        field_selector: str | None = None,
    ) -> shapes.Machines:
        """Machines of the inventory, each with its current boot; those that are selected."""
        answer: shapes.Machines = self._asker.ask(
            "GET",
            "/v1/machines",
            query={"limit": limit, "continue": continue_, "selector": selector, "fieldSelector": field_selector},
        )
        return answer

    def each(
        self, *, limit: int = 500, selector: str | None = None, field_selector: str | None = None
    ) -> Iterator[shapes.MachineListed]:
        """All that `listed` lists, page by page, `limit` in one; FailedError where what a page ended with has
        gone."""
        return pages(
            lambda after: self.listed(limit=limit, selector=selector, field_selector=field_selector, continue_=after),
            "machines",
        )

    def shown(self, name: str) -> shapes.MachineShown:
        """One machine: what it would be served now, and its latest boots."""
        answer: shapes.MachineShown = self._asker.ask("GET", f"/v1/machines/{segment(name)}")
        return answer

    def explained(
        self, name: str, *, boot: str | None = None
    ) -> shapes.Explained | shapes.ExplainedInPart | shapes.PastExplained:
        """What this machine gets, however it is recognised, and why; and how far the boot is that it has. With
        `boot`: what that boot got then."""
        answer: shapes.Explained | shapes.ExplainedInPart | shapes.PastExplained = self._asker.ask(
            "GET", f"/v1/machines/{segment(name)}/explain", query={"boot": boot}
        )
        return answer

    def claim_explained(
        self,
        *,
        mac: str | None = None,
        uuid: str | None = None,
        serial: str | None = None,
        arch: str | None = None,
        platform: str | None = None,
    ) -> shapes.ClaimExplained:
        """What whoever claims this would get, and why. Nothing is recorded."""
        answer: shapes.ClaimExplained = self._asker.ask(
            "GET", "/v1/explain", query={"mac": mac, "uuid": uuid, "serial": serial, "arch": arch, "platform": platform}
        )
        return answer


class MetricsRoom(Room):
    """Of `metrics`."""

    def metrics(self) -> str:
        """Every metric of the service, in Prometheus' text format."""
        answer: str = self._asker.ask("GET", "/metrics", text=True)
        return answer


class NodeHealthRoom(Room):
    """Of `node_health`."""

    def shown(self, name: str) -> shapes.MachineHealth:
        """The report of its current boot, and what the inventory expects now."""
        answer: shapes.MachineHealth = self._asker.ask("GET", f"/v1/machines/{segment(name)}/health")
        return answer


class ProofsRoom(Room):
    """Of `proofs`."""

    def shown(self, boot: str) -> shapes.SignedProof:
        """The record's text and its signature."""
        answer: shapes.SignedProof = self._asker.ask("GET", f"/v1/boots/{segment(boot)}/proof")
        return answer


class ReadinessRoom(Room):
    """Of `readiness`."""

    def healthy(self) -> shapes.Healthy:
        """This process answers."""
        answer: shapes.Healthy = self._asker.ask("GET", "/healthz")
        return answer

    def ready(self) -> shapes.Readiness:
        """Whether machines can boot now; and in every case, detail by detail, what is not as it should be."""
        answer: shapes.Readiness = self._asker.ask("GET", "/readyz", also=(503,))
        return answer


class RemediesRoom(Room):
    """Of `remedies`."""

    def listed(self, *, limit: int | None = None) -> shapes.Remedies:
        """Whether anything may begin, who is not well and what is done about it, and the latest remedies."""
        answer: shapes.Remedies = self._asker.ask("GET", "/v1/remedies", query={"limit": limit})
        return answer

    def shown(self, number: int) -> shapes.RemedyShown:
        """One, with what was at hand of the machine's boot."""
        answer: shapes.RemedyShown = self._asker.ask("GET", f"/v1/remedies/{segment(number)}")
        return answer

    def paused(self) -> shapes.Paused:
        """Whether remedies are paused by somebody's word."""
        answer: shapes.Paused = self._asker.ask("GET", "/v1/remedies/pause")
        return answer

    def pause(
        self, body: shapes.RemediesOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.PauseActed:
        """Nothing begins any more."""
        answer: shapes.PauseActed = self._asker.ask(
            "POST", "/v1/remedies/pause", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def resume(
        self, body: shapes.RemediesOrdering, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.PauseActed:
        """Remedies may begin again; what was found until now is no matter of the fleet any more."""
        answer: shapes.PauseActed = self._asker.ask(
            "POST", "/v1/remedies/resume", headers={"If-Match": if_match, "Idempotency-Key": idempotency_key}, body=body
        )
        return answer


class RolloutsRoom(Room):
    """Of `rollouts`."""

    def listed(self, *, limit: int | None = None) -> shapes.Rollouts:
        """The newest first."""
        answer: shapes.Rollouts = self._asker.ask("GET", "/v1/rollouts", query={"limit": limit})
        return answer

    def started(
        self, body: shapes.Start, *, idempotency_key: str | None = None
    ) -> shapes.RolloutStarted | shapes.RolloutPlanned:
        """Begin one, or say what it would be."""
        answer: shapes.RolloutStarted | shapes.RolloutPlanned = self._asker.ask(
            "POST", "/v1/rollouts", headers={"Idempotency-Key": idempotency_key}, body=body
        )
        return answer

    def shown(self, number: int) -> shapes.RolloutDetail:
        """One, with its machines and what was done to it."""
        answer: shapes.RolloutDetail = self._asker.ask("GET", f"/v1/rollouts/{segment(number)}")
        return answer

    def pause(
        self, number: int, body: shapes.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.RolloutActed:
        """Nobody's turn comes any more."""
        answer: shapes.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/pause",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def resume(
        self, number: int, body: shapes.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.RolloutActed:
        """It goes on."""
        answer: shapes.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/resume",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer

    def undo(
        self, number: int, body: shapes.Order, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> shapes.RolloutActed:
        """Machines boot what they had."""
        answer: shapes.RolloutActed = self._asker.ask(
            "POST",
            f"/v1/rollouts/{segment(number)}/undo",
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
            body=body,
        )
        return answer


class WatchRoom(Room):
    """Of `watch`."""

    def watched(self, *, machine: str | None = None, since: int | None = None) -> Watch:
        """Lines `{"event": {…}}` and `{"heartbeat": moment}`; without `since` from now on."""
        return self._asker.follow("/v1/boots/watch", query={"machine": machine, "since": since})


class WebRoom(Room):
    """Of `web`."""

    def described(self) -> dict[str, Any]:
        """This document."""
        answer: dict[str, Any] = self._asker.ask("GET", "/v1/openapi.json")
        return answer


class Rooms:
    """All of it."""

    def __init__(self, asker: Asker) -> None:
        self.audits = AuditsRoom(asker)
        self.boots = BootsRoom(asker)
        self.channels = ChannelsRoom(asker)
        self.declared = DeclaredRoom(asker)
        self.delete_node = DeleteNodeRoom(asker)
        self.drains = DrainsRoom(asker)
        self.drift = DriftRoom(asker)
        self.enrolments = EnrolmentsRoom(asker)
        self.events = EventsRoom(asker)
        self.fleet = FleetRoom(asker)
        self.freeze = FreezeRoom(asker)
        self.images = ImagesRoom(asker)
        self.intents = IntentsRoom(asker)
        self.inventory = InventoryRoom(asker)
        self.join_tokens = JoinTokensRoom(asker)
        self.logins = LoginsRoom(asker)
        self.machines = MachinesRoom(asker)
        self.metrics = MetricsRoom(asker)
        self.node_health = NodeHealthRoom(asker)
        self.proofs = ProofsRoom(asker)
        self.readiness = ReadinessRoom(asker)
        self.remedies = RemediesRoom(asker)
        self.rollouts = RolloutsRoom(asker)
        self.watch = WatchRoom(asker)
        self.web = WebRoom(asker)
