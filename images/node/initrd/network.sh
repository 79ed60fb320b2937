# shellcheck shell=sh disable=SC2034 # variables in capitals are shared by the parts
# An address: for the link that the command line names, else for the card that booted, else for the first of the others
# that has a link, by name. By DHCP, or (ip=auto6) by the announcements of an IPv6 router.

bring_up_network() {
  [ -z "$LINK" ] || { bring_up_link; return; }
  nic=''
  if [ -n "$MAC" ]; then
    say "waiting for the network card that booted, $MAC"
    wait_for 30 nic_of_mac && try_nic "$nic" 60 && return 0
    say "${nic:-it} gave no network; trying the others: $(describe)"
  fi
  booted=$nic
  for nic in $(nics); do ip link set "$nic" up; done
  sleep 5 # all links negotiate at the same time
  for nic in $(nics); do
    [ "$nic" != "$booted" ] || continue
    if ! carrier "$nic" || ! try_nic "$nic" 15; then continue; fi
    only_up "$nic"
    return 0
  done
  because "no network: ${booted:+$booted, which booted, and }none of the cards got an address ($(describe))"
}

only_up() { # NIC: cards that were only tried go down again, for the root to rename them; and they forget what routers announced
  for card in $(nics); do
    [ "$card" = "$1" ] || ip link set "$card" down || say "$card does not go down"
  done
}

carrier() { [ "$(cat "$NET/$1/carrier" 2>/dev/null)" = 1 ]; }

describe() { # the cards and their links, for people
  for card in $(nics); do
    echo "$card $(address_of "$card") link $(cat "$NET/$card/operstate")"
  done | tr '\n' ',' | sed 's/,$//; s/,/, /g'
}

wait_for() { # SECONDS COMMAND...
  deadline=$(($(date +%s) + $1))
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

try_nic() { # LINK SECONDS for the link; as long again for an address, because a switch may forward only 30 s after the link
  ip link set "$1" up
  if ! wait_for "$2" carrier "$1"; then
    say "$1 has had no link for $2 seconds"
    return 1
  fi
  say "$1 has a link, asking for an address"
  rm -f "$RUN/address"
  "by_${METHOD:-dhcp}" "$1" "$2" || return 1
  [ -n "$MAC" ] || MAC=$(cat "$NET/$1/address")
  UPLINK=$1
  say "$1 has address $(cat "$RUN/address")"
  leave_units "$1"
  deliver &
}

by_dhcp() { # LINK SECONDS
  hostname=${NAME:+-x hostname:$NAME}
  # shellcheck disable=SC2086 # no name: no words
  RUN=$RUN NAMESERVERS=$NAMESERVERS udhcpc -f -n -q -S -i "$1" -t $(($2 / 3)) -T 3 -s "$LIB/dhcp.sh" \
    -O staticroutes -O routes -O mtu -O search $hostname >/dev/null 2>&1
  [ -s "$RUN/address" ] && return
  say "$1 got no address: no DHCP server answered"
  return 1
}

by_auto6() { # LINK SECONDS: RFC 4862; routes and MTU are the kernel's own work
  for server in $NAMESERVERS; do echo "nameserver $server"; done >"$RUN/resolv.conf"
  cp "$RUN/resolv.conf" "${ETC:-/etc}/resolv.conf"
  wait_for "$2" announced "$1" && return
  say "$1 got no address: no IPv6 router announced a prefix"
  return 1
}

announced() { # LINK: a prefix has become an address, and nobody else has it
  ip -6 -o addr show dev "$1" scope global 2>/dev/null | grep -v tentative | awk 'NR == 1 { print $4 }' >"$RUN/address"
  [ -s "$RUN/address" ]
}
