# shellcheck shell=sh
# What happens with local disks. Nothing is written to one unless netboot.disks= or /etc/netboot/disks asks for it, and what
# others left on one is wiped by `wipe` only. Where a disk cannot be had as asked, the machine boots with memory; the unit fails.
SYS=${NETBOOT_SYS:-/sys} DEV=${NETBOOT_DEV:-/dev} RUN=${NETBOOT_RUN:-/run/netboot-disks}
CONF=${NETBOOT_CONF:-/etc/netboot/disks} CMDLINE=${NETBOOT_CMDLINE:-/proc/cmdline} MOUNTS=${NETBOOT_MOUNTS:-/proc/mounts}
NAME=netboot-disk # of array, volume group and file system

say() { echo "netboot-disks: $*"; }

refuse() {
  echo "netboot-disks: $*" >&2
  return 1
}

asked() { # POLICY[:DISK[,DISK]]
  argument=$(tr ' ' '\n' <"$CMDLINE" | sed -n 's/^netboot\.disks=//p' | tail -n 1)
  [ -n "$argument" ] || [ ! -r "$CONF" ] || argument=$(sed 's/#.*//' "$CONF" | tr -d ' \t' | grep . | tail -n 1)
  echo "${argument:-ignore}"
}

all_nvme() {
  for block in "$SYS"/block/nvme*n*; do
    if [ -e "$block" ] && [ "$(cat "$block/removable" 2>/dev/null)" != 1 ]; then echo "${block##*/}"; fi
  done
}

devices() { # DISK: its partitions and itself, by the kernel's list: nvme0n10 is not a part of nvme0n1
  for part in "$SYS/block/$1/$1"*; do
    if [ -e "$part/partition" ]; then echo "${part##*/}"; fi
  done
  echo "$1"
}

in_use() { # DISK: mounted, or a part of something that runs; partitions too
  for device in $(devices "$1"); do
    if grep -q "^$DEV/$device " "$MOUNTS"; then return 0; fi
  done
  for holder in "$SYS/block/$1"/holders/* "$SYS/block/$1/$1"*/holders/*; do
    if [ -e "$holder" ]; then return 0; fi
  done
  return 1
}

signatures() { # DISK: what wipefs(8) finds on it; fails where it cannot be read, which is not the same as nothing
  listed=$(wipefs --noheadings --output TYPE "$DEV/$1") && printf '%s' "$listed" | tr '\n' ' '
}

check() { # DISKS: all there, none in use
  [ -n "$1" ] || { refuse "$policy: there is no NVMe disk here"; return 1; }
  for disk in $1; do
    [ -e "$SYS/block/$disk" ] || { refuse "$policy: there is no disk $disk here"; return 1; }
    if in_use "$disk"; then refuse "$policy: $disk is in use"; return 1; fi
  done
}

check_empty() { # DISKS: nothing of anybody is on them
  for disk in $1; do
    found=$(signatures "$disk") || { refuse "$policy: $disk cannot be read"; return 1; }
    [ -z "$found" ] || {
      refuse "$policy: $disk is not empty ($found); boot once with netboot.disks=wipe to lose what is on it"
      return 1
    }
  done
}

wipe() { # DISKS
  for disk in $1; do
    for device in $(devices "$disk"); do
      wipefs --all --force --quiet "$DEV/$device" || { refuse "wipe: $device: wipefs failed"; return 1; }
    done
    blkdiscard --force "$DEV/$disk" 2>/dev/null || say "$disk cannot discard; what was on it is there, without its signatures"
    say "$disk is wiped"
  done
}

raid0() { # DISKS: prints the array's device
  paths=$(paths "$1")
  # shellcheck disable=SC2086 # each path is an argument
  if mdadm --assemble "$DEV/md/$NAME" --name="$NAME" $paths >&2; then
    echo "$DEV/md/$NAME"
    return
  fi
  check_empty "$1" || return 1
  # shellcheck disable=SC2086
  mdadm --create "$DEV/md/$NAME" --run --force --level=0 --name="$NAME" --homehost=any --raid-devices="$(echo "$1" | wc -w)" \
    $paths >&2 || { refuse "raid0: mdadm could not make the array"; return 1; }
  echo "$DEV/md/$NAME"
}

ours() { # DISKS: those that are members of the array that raid0 makes
  for disk in $1; do
    if mdadm --examine --export "$DEV/$disk" 2>/dev/null | grep -Eqx "MD_NAME=(any:)?$NAME"; then echo "$disk"; fi
  done
}

empty() { # DISKS: those with nothing of anybody on them, and that nobody uses
  for disk in $1; do
    if ! in_use "$disk" && found=$(signatures "$disk") && [ -z "$found" ]; then echo "$disk"; fi
  done
}

automatic() { # DISKS: the array of an earlier boot, else those that are empty; none of either is no failure
  chosen=$(ours "$1")
  [ -n "$chosen" ] || chosen=$(empty "$1")
  [ -z "$chosen" ] || { policy=raid0 && disks; return; }
  say "auto: there is no empty NVMe disk; containerd's and the kubelet's state are in memory"
  memory
}

lvm() { # DISKS: prints the volume's device
  paths=$(paths "$1")
  if ! vgs --noheadings "$NAME" >/dev/null 2>&1; then
    check_empty "$1" || return 1
    # shellcheck disable=SC2086 # each path is an argument
    { vgcreate --yes "$NAME" $paths && lvcreate --yes --activate n --extents 100%FREE --stripes "$(echo "$1" | wc -w)" --name state "$NAME"; } >&2 ||
      { refuse "lvm: the volume could not be made"; return 1; }
  fi
  lvchange --activate y "$NAME/state" >&2 || { refuse "lvm: $NAME/state cannot be activated"; return 1; }
  echo "$DEV/$NAME/state"
}

paths() { # DISKS
  for disk in $1; do echo "$DEV/$disk"; done
}

mount_state() { # DEVICE: images stay from boot to boot; what the kubelet had (volumes, credentials) does not
  found=$(blkid --probe --match-tag LABEL --output value "$1" 2>/dev/null)
  [ "$found" = "$NAME" ] || mkfs.ext4 -q -F -m 0 -E nodiscard -L "$NAME" "$1" || { refuse "$policy: no file system could be made on $1"; return 1; }
  mkdir -p "$RUN/disk"
  mount -t ext4 -o noatime "$1" "$RUN/disk" || { refuse "$policy: $1 cannot be mounted"; return 1; }
  rm -rf "$RUN/disk/kubelet"
  mkdir -p "$RUN/disk/containerd" "$RUN/disk/kubelet"
  chmod 0711 "$RUN/disk/containerd"
  chmod 0750 "$RUN/disk/kubelet"
  ln -sfn disk/containerd "$RUN/containerd"
  ln -sfn disk/kubelet "$RUN/kubelet"
  say "containerd's and the kubelet's state are on $1 ($policy)"
}

memory() { # as an image without this feature has it
  mkdir -p "$RUN/containerd" "$RUN/kubelet"
  mount -t tmpfs -o mode=0711,size=50% tmpfs "$RUN/containerd"
  mount -t tmpfs -o mode=0750,size=25% tmpfs "$RUN/kubelet"
}

disks() { # do what is asked; fails where the state must be in memory although a disk was asked for, or a wipe went wrong
  case $policy in
    ignore) memory && return ;;
    auto)
      automatic "$chosen"
      return
      ;;
    ceph)
      say "left for Ceph: $(echo "$chosen" | tr '\n' ' ')"
      memory && return
      ;;
    wipe)
      memory
      check "$chosen" && wipe "$chosen"
      return
      ;;
    raid0 | lvm) ;;
    *)
      memory
      refuse "'$policy' is no policy; ignore, auto, wipe, raid0, lvm and ceph are. No disk was touched"
      return
      ;;
  esac
  check "$chosen" || { memory; return 1; }
  if [ "$policy" = raid0 ]; then device=$(raid0 "$chosen"); else device=$(lvm "$chosen"); fi
  if [ -n "$device" ] && mount_state "$device"; then return 0; fi
  memory
  return 1
}

said=$(asked)
policy=${said%%:*} chosen=
case $said in *:*) chosen=$(echo "${said#*:}" | tr ',' '\n') ;; esac
mkdir -p "$RUN"
case $policy in ignore) ;; *)
  udevadm settle --timeout=60 || say "udev is not done; going on"
  [ -n "$chosen" ] || chosen=$(all_nvme)
  ;;
esac
disks
