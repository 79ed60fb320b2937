# shellcheck shell=sh
# Make the settings of /etc/netboot/rdma.conf and netboot.sriov=. All are tried; the unit fails if one could not be made.
SYS=${NETBOOT_SYS:-/sys} CONF=${NETBOOT_CONF:-/etc/netboot/rdma.conf} CMDLINE=${NETBOOT_CMDLINE:-/proc/cmdline}
failed=0

say() { echo "netboot-rdma: $*"; }

fail() {
  say "$*" >&2
  failed=1
}

is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

interfaces() { # WHICH: the cards of that driver, or that card; virtual functions never
  for net in "$SYS"/class/net/*; do
    if [ ! -e "$net/device" ] || [ -e "$net/device/physfn" ]; then continue; fi
    driver=$(readlink "$net/device/driver")
    if [ "${net##*/}" = "$1" ] || [ "${driver##*/}" = "$1" ]; then echo "${net##*/}"; fi
  done
}

sriov() { # INTERFACE COUNT
  device=$SYS/class/net/$1/device
  total=$(cat "$device/sriov_totalvfs" 2>/dev/null || echo 0)
  is_number "$2" || { fail "sriov $1: '$2' is not a number"; return; }
  [ "$2" -le "$total" ] || {
    fail "sriov $1: $2 virtual functions are asked for, and its firmware allows $total (mlxconfig NUM_OF_VFS, SRIOV_EN; BIOS)"
    return
  }
  [ "$(cat "$device/sriov_numvfs" 2>/dev/null)" != "$2" ] || return 0
  # The kernel changes a number that is not zero only by way of zero.
  { echo 0 >"$device/sriov_numvfs" && echo "$2" >"$device/sriov_numvfs"; } 2>/dev/null || {
    fail "sriov $1: the kernel refuses $2 virtual functions; see its log"
    return
  }
  say "$1 has $2 virtual functions"
}

mtu() { # INTERFACE BYTES
  if ip link set dev "$1" mtu "$2"; then say "$1 has MTU $2"; else fail "mtu $1: $2 is refused"; fi
}

pfc() { # INTERFACE PRIORITY[,PRIORITY]
  on=$(echo "$2" | sed 's/,/:on /g; s/$/:on/')
  # shellcheck disable=SC2086 # each priority is an argument
  if dcb pfc set dev "$1" prio-pfc all:off $on; then say "$1 pauses priorities $2"; else fail "pfc $1: $2 is refused"; fi
}

dscp() { # INTERFACE DSCP:PRIORITY[,DSCP:PRIORITY]
  # shellcheck disable=SC2046 # each pair is an argument
  if dcb app replace dev "$1" dscp-prio $(echo "$2" | tr ',' ' '); then say "$1 trusts DSCP $2"; else fail "dscp $1: $2 is refused"; fi
}

tos() { # INTERFACE NUMBER: configfs is the kernel's, Documentation/ABI/testing/configfs-rdma_cm
  for rdma in "$SYS/class/net/$1/device/infiniband"/*; do
    [ -e "$rdma" ] || { fail "tos $1: it has no RDMA device; is its RDMA module loaded?"; continue; }
    settings=$SYS/kernel/config/rdma_cm/${rdma##*/}
    mkdir -p "$settings" 2>/dev/null
    for port in "$settings"/ports/*/default_roce_tos; do
      echo "$2" 2>/dev/null >"$port" || { fail "tos ${rdma##*/}: $2 is refused"; continue; }
      say "${rdma##*/} has type of service $2"
    done
  done
}

apply() { # KEY WHICH VALUE
  [ -n "$3" ] || { fail "$1 $2: a value is missing"; return; }
  found=$(interfaces "$2")
  [ -n "$found" ] || { fail "$1 $2: there is no such driver or interface here"; return; }
  for interface in $found; do
    case $1 in
      sriov) sriov "$interface" "$3" ;;
      mtu) mtu "$interface" "$3" ;;
      pfc) pfc "$interface" "$3" ;;
      dscp) dscp "$interface" "$3" ;;
      tos) tos "$interface" "$3" ;;
      *) fail "$1 $2 $3: unknown; sriov, mtu, pfc, dscp and tos are known"; return ;;
    esac
  done
}

settings() { # lines of KEY WHICH VALUE; the kernel's argument in the place of the file's `sriov`
  asked=$(tr ' ' '\n' <"$CMDLINE" | sed -n 's/^netboot\.sriov=//p' | tail -n 1)
  [ ! -r "$CONF" ] || sed 's/#.*//' "$CONF" | while read -r key which value; do
    [ -z "$key" ] || { [ -n "$asked" ] && [ "$key" = sriov ]; } || echo "$key $which $value"
  done
  for one in $(echo "$asked" | tr ',' ' '); do
    case $one in
      *:*) echo "sriov ${one%%:*} ${one#*:}" ;;
      *) echo "sriov $one" ;;
    esac
  done
}

wanted=$(settings)
[ -n "$wanted" ] || exit 0
udevadm settle --timeout=120 || say "udev is not done; going on"
while read -r key which value; do apply "$key" "$which" "$value"; done <<END
$wanted
END
exit "$failed"
