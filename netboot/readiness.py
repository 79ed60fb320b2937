"""What `/readyz` of the management listener answers: written by it, read by `netboot doctor`."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Detail(BaseModel):
    """One line of `/readyz`; whatever else is known of it (counts, names) stands beside."""

    model_config = ConfigDict(frozen=True, extra="allow")

    ok: bool
    message: str
    remedy: str = ""
    """Not shown where all is well."""

    @model_serializer(mode="wrap")
    def _without_a_remedy_that_nobody_needs(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.ok or not self.remedy:
            del fields["remedy"]
        return fields


def of_configuration(changed: str) -> Detail:
    """What the supervisor says of netboot.yaml: in words, that the service goes by an older one; "": it does not."""
    remedy = "`netboot config reload`, and what that does not take: restart the service"
    return Detail(ok=not changed, message=changed or "in force", remedy=remedy)


class Readiness(BaseModel):
    """The answer of the management listener's `/readyz`. `ready`: machines can boot now; `degraded`: they can or not,
    something wants attention. `site`: a mark of the key of boot ids, the same for all who have that; "": it is not
    there, or cannot be read."""

    model_config = ConfigDict(frozen=True)

    ready: bool
    degraded: bool
    site: str = ""
    details: dict[str, Detail]
