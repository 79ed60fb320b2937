"""What is sent of a change of an object."""

from netboot.kube.act_objects import every_key
from netboot.lifecycle.rollout import Member
from netboot.lifecycle.rollout_objects import RolloutSaid, Said, spec_of
from netboot.lifecycle.rollout_specs import LastRollout
from netboot.machines.strategy import Strategy
from tests.rollouts import OLD, rollout


def test_a_merge_patch_names_every_key_and_has_null_for_what_is_left_out() -> None:
    begun = rollout().model_copy(update={"strategy": Strategy(auto_undo=True)})
    spec = spec_of(Said(OLD, "tiny", "alice", 5, RolloutSaid(begun, {"a": Member(machine="a", previous=OLD)})))
    said = every_key(spec)
    assert said.keys() == {"image", "image_name", "who", "since", "rollout"}
    assert said["rollout"].keys() == LastRollout.model_fields.keys()
    assert said["rollout"]["strategy"] == {
        "canary": 2,
        "max_unavailable": "5%",
        "per_rack": None,
        "bake": 1800,
        "deadline": 1800,
        "allow_bare": False,
        "allow_local_data": False,
        "split_domains": None,
        "auto_undo": True,
    }
    assert (said["rollout"]["ended"], said["rollout"]["notes"]) == (None, [])
    assert every_key(spec_of(Said(OLD, "tiny", "alice", 5)))["rollout"] is None
