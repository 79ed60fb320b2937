# shellcheck shell=sh disable=SC2034 # variables in capitals are shared by the parts
# Network cards by name, and what the command line makes of them: a bond, a VLAN.

NET=${NET:-/sys/class/net}

nics() { # real Ethernet cards (ARPHRD_ETHER), by name; where the command line names drivers, theirs
  for path in "$NET"/*; do
    if [ -e "$path/device" ] && [ "$(cat "$path/type")" = 1 ] && of_drivers "$path"; then echo "${path##*/}"; fi
  done
}

of_drivers() { # PATH
  [ -n "$DRIVERS" ] || return 0
  driver=$(readlink "$1/device/driver")
  case " $DRIVERS " in *" ${driver##*/} "*) ;; *) return 1 ;; esac
}

address_of() { # NIC: the card's own, which is another than it shows within a bond
  cat "$NET/$1/bonding_slave/perm_hwaddr" 2>/dev/null || cat "$NET/$1/address"
}

nic_of_mac() { # sets nic
  for nic in $(nics); do
    [ "$(address_of "$nic")" != "$MAC" ] || return 0
  done
  nic=''
  return 1
}

names_of() { # NIC: by systemd.net-naming-scheme(7), from its MAC and its PCI path
  echo "enx$(address_of "$1" | tr -d :)"
  device=$(readlink -f "$NET/$1/device")
  case ${device##*/} in virtio*) device=${device%/*} ;; esac
  matches "${device##*/}" '[0-9a-f]{4,}(:[0-9a-f]{2}){2}\.[0-7]' || return 0
  # shellcheck disable=SC2046 # words: domain, bus, slot, function
  set -- "$NET/$1" $(echo "${device##*/}" | tr ':.' '  ')
  base=en
  [ $((0x$2)) = 0 ] || base=enP$((0x$2))
  base=${base}p$((0x$3))s$((0x$4))
  number=$(cat "$1/dev_port" 2>/dev/null || echo 0) port=$(cat "$1/phys_port_name" 2>/dev/null)
  for name in $([ "$5" != 0 ] || echo "$base") "${base}f$5"; do
    [ "$number" != 0 ] || echo "$name" # the first port, or the only one
    if [ -n "$port" ]; then echo "${name}n$port"; elif [ "$number" != 0 ]; then echo "${name}d$number"; fi
  done
}

card_named() { # BOOTIF or NAME: sets nic
  [ "$1" != BOOTIF ] || { nic_of_mac && return; }
  for nic in $(nics); do
    names_of "$nic" | grep -qxF "$1" && return 0
  done
  nic=''
  return 1
}

cards_there() { # sets found, the card that booted first, and missing
  found='' missing=''
  for card in $CARDS; do
    if ! card_named "$card"; then
      missing="$missing $card"
    elif [ "$(address_of "$nic")" = "$MAC" ]; then
      found="$nic $found"
    else
      found="$found $nic"
    fi
  done
  [ -z "$missing" ]
}

bring_up_link() { # what ip= names; a bond does without a card that is broken
  say "waiting for the network cards of $LINK: $CARDS"
  wait_for 30 cards_there || say "no card is named$missing; there are $(describe)"
  # shellcheck disable=SC2086 # words
  set -- $found
  [ $# -gt 0 ] || because "no network: $LINK is to be made of $CARDS, and there are $(describe)" || return 1
  PORTS=$* lower=$1
  if [ -n "$BOND" ]; then
    make_bond || return 1
    lower=$BOND
  fi
  if [ -n "$VLAN" ]; then
    make_vlan "$lower" || return 1
    lower=$VLAN
  fi
  try_nic "$lower" 60 || because "no network: $lower got no address ($(describe))"
}

make_bond() { # it has the address of the first card, the one that booted, by which DHCP servers know the machine
  bond=$NET/$BOND/bonding
  [ -e "$NET/bonding_masters" ] ||
    because "no bond $BOND: the initrd has no module bonding; add it to modules.initrd of the recipe" || return 1
  # One of a try that failed, or of a kernel's own, may lack options, and has the address of another card
  [ ! -d "$bond" ] || echo "-$BOND" >"$NET/bonding_masters"
  echo "+$BOND" >"$NET/bonding_masters"
  for option in $BOND_OPTIONS; do
    echo "${option#*=}" >"$bond/${option%%=*}" || because "no bond $BOND: the kernel refuses $option" || return 1
  done
  for card in $PORTS; do
    grep -qw "$card" "$bond/slaves" && continue
    ip link set "$card" down
    echo "+$card" >"$bond/slaves" || say "$card cannot be a part of $BOND"
  done
  ip link set "$BOND" up
}

make_vlan() { # LINK, which gets no address: by a router's announcements it would be reached untagged, in the root too
  echo 0 2>/dev/null >"/proc/sys/net/ipv6/conf/$1/accept_ra"
  ip link set "$1" up
  [ -e "$NET/$VLAN" ] || ip link add link "$1" name "$VLAN" type vlan id "$VLAN_ID" ||
    because "no VLAN $VLAN: the initrd has no module 8021q; add it to modules.initrd of the recipe"
}
