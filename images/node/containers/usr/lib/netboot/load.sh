# shellcheck shell=sh
# FOLDER: its archives of container images into containerd, where the kubelet finds them. One that fails keeps no other.
failed=
for archive in "$1"/*.tar; do
  ctr -n k8s.io images import "$archive" || failed="$failed $archive"
done
# From containerd 1.7 on, what is pinned is never collected as garbage: nobody could pull it again.
for name in $(ctr -n k8s.io images list -q); do
  ctr -n k8s.io images label "$name" io.cri-containerd.pinned=pinned >/dev/null
done
[ -z "$failed" ] || {
  echo "containerd does not take:$failed" >&2
  exit 1
}
