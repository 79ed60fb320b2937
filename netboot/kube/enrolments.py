"""The enrolments of a site that has them in a cluster (`enrolments_kubernetes`)."""

from functools import partial
from typing import Literal

from netboot.config_outside import EnrolmentsInKubernetes
from netboot.join.object_enrolments import ObjectEnrolments
from netboot.join.object_orders import by_kubectl
from netboot.kube.connection import connect
from netboot.kube.enrolment_objects import KubeEnrolmentObjects


def open_enrolments(place: EnrolmentsInKubernetes, account: Literal["reader", "join"]) -> ObjectEnrolments:
    """As an account of ours may use them, which carries out no order of people; nothing is sent yet."""
    reach = partial(connect, getattr(place, account), manifests="enrolments")
    return ObjectEnrolments(KubeEnrolmentObjects(reach, place.namespace), partial(by_kubectl, place.namespace))
