# shellcheck shell=sh
# The NIC that booted first, then the others: those with a link, by name. IPv4 by DHCP.

bring_up_network() {
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
    carrier "$nic" && try_nic "$nic" 15 && return 0
  done
  because "no network: ${booted:+$booted, which booted, and }none of the cards got an address ($(describe))"
}

nics() { # real Ethernet cards (ARPHRD_ETHER), by name
  for path in /sys/class/net/*; do
    if [ -e "$path/device" ] && [ "$(cat "$path/type")" = 1 ]; then echo "${path##*/}"; fi
  done
}

nic_of_mac() { # sets nic
  for nic in $(nics); do
    [ "$(cat "/sys/class/net/$nic/address")" != "$MAC" ] || return 0
  done
  nic=''
  return 1
}

carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }

describe() { # the cards and their links, for people
  for card in $(nics); do
    echo "$card $(cat "/sys/class/net/$card/address") link $(cat "/sys/class/net/$card/operstate")"
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

try_nic() { # NIC SECONDS for the link; as long again for DHCP, because a switch may forward only 30 s after the link
  ip link set "$1" up
  if ! wait_for "$2" carrier "$1"; then
    say "$1 has had no link for $2 seconds"
    return 1
  fi
  say "$1 has a link, asking for an address"
  hostname=${NAME:+-x hostname:$NAME}
  rm -f "$RUN/address"
  # shellcheck disable=SC2086 # no name: no words
  RUN=$RUN udhcpc -f -n -q -S -i "$1" -t $(($2 / 3)) -T 3 -s "$LIB/dhcp.sh" -O staticroutes -O mtu $hostname >/dev/null 2>&1
  if [ ! -s "$RUN/address" ]; then
    say "$1 got no address: no DHCP server answered"
    return 1
  fi
  [ -n "$MAC" ] || MAC=$(cat "/sys/class/net/$1/address")
  say "$1 has address $(cat "$RUN/address")"
  deliver &
}
