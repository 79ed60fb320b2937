# shellcheck shell=sh disable=SC2153 # names in capitals are of the rule
# Where containerd's and the kubelet's state is, is known now: their sizes, and what the kubelet may not give to Pods.
RUN=${NETBOOT_RUN:-/run/netboot} ROOT=${NETBOOT_ROOT:-} CMDLINE=${NETBOOT_CMDLINE:-/proc/cmdline}
STATE=$ROOT/var/lib/containerd KUBELET_STATE=$ROOT/var/lib/kubelet
DROP_IN=$ROOT/etc/kubernetes/kubelet.d/10-netboot-memory.conf
# shellcheck source=images/node/initrd/memory.sh
. "$RUN/memory.sh"

say() { echo "netboot-memory: $*"; }

state=disk
[ "$(stat -f -c %T "$STATE")" != tmpfs ] || state=memory
asked=$(tr ' ' '\n' <"$CMDLINE" | sed -n 's/^netboot\.store_mib=//p' | tail -n 1)
case $asked in 0* | *[!0-9]* | ????????*) say "netboot.store_mib=$asked is no number of MiB; left out" && asked= ;; esac
read -r memory root containers <"$RUN/memory"
eval "$(memory_budget "$memory" "$root" "$containers" "$state" "$asked")"

# A GiB of logs of 110 containers, three files each, where there is room
logs=$(between 1 $((OVERLAY / 2 / 330)) 10)
cat >"$DROP_IN.new" <<EOF
{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
 "systemReserved": {"memory": "${RESERVED}Mi"}, "evictionHard": {"memory.available": "${EVICTION}Mi",
 "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "10%", "imagefs.inodesFree": "5%"},
 "containerLogMaxSize": "${logs}Mi"}
EOF
mv "$DROP_IN.new" "$DROP_IN"

say "$memory MiB: root $IMAGE, system $SYSTEM, overlay $OVERLAY (logs of $logs MiB a file), containerd $STORE, kubelet $KUBELET," \
  "eviction $EVICTION, Pods $LEFT; state is on $state"
[ $((LEFT * 4)) -ge "$memory" ] || say "less than a quarter is left for Pods: this image wants a larger machine, or a disk (netboot.disks)"
[ "$state" = memory ] || exit 0
if ! { mount -o "remount,size=${STORE}m" "$STATE" && mount -o "remount,size=${KUBELET}m" "$KUBELET_STATE"; }; then
  say "containerd's and the kubelet's state keep the sizes that they were mounted with"
  exit 1
fi
