#!/bin/sh
# What udhcpc calls: sets address, MTU, routes, name servers and search domains.
# shellcheck disable=SC2154 # udhcpc gives them: interface ip mask router dns mtu staticroutes routes search domain
NET=${NET:-/sys/class/net}
case $1 in
  bound | renew) ;;
  *) exit 0 ;;
esac

set_mtu() { # LINK MTU: what a VLAN or a bond lies on can be no smaller
  for lower in "$NET/$1"/lower_*; do
    [ ! -e "$lower" ] || [ "$(cat "$lower/mtu")" -ge "$2" ] || set_mtu "${lower##*/lower_}" "$2"
  done
  ip link set "$1" mtu "$2"
}

prefix() { # ADDRESS: the length that its class has; option 33 (RFC 2132) knows no other
  if [ "${1%%.*}" -lt 128 ]; then echo 8; elif [ "${1%%.*}" -lt 192 ]; then echo 16; else echo 24; fi
}

[ -z "$mtu" ] || set_mtu "$interface" "$mtu"
ip -4 addr flush dev "$interface" # its IPv6 link-local address stays: systemd-networkd would wait for one
ip addr add "$ip/$mask" broadcast + dev "$interface"
if [ -n "$staticroutes" ]; then # RFC 3442: then the options router and 33 count for nothing
  # shellcheck disable=SC2086 # pairs of words
  set -- $staticroutes
  while [ $# -ge 2 ]; do
    case $2 in
      0.0.0.0) ip route add "$1" dev "$interface" ;;
      *) ip route add "$1" via "$2" dev "$interface" ;;
    esac
    shift 2
  done
else
  for gateway in $router; do
    [ "$mask" != 32 ] || ip route add "$gateway" dev "$interface"
    ip route add default via "$gateway" dev "$interface" && break
  done
  for pair in $routes; do
    ip route add "${pair%/*}/$(prefix "$pair")" via "${pair#*/}" dev "$interface"
  done
fi

{
  domains=${search:-$domain}
  [ -z "$domains" ] ||
    domains=$(echo "$domains" | tr ' ' '\n' | grep -Ex '[0-9A-Za-z_.-]{1,253}' | head -n 6 | tr '\n' ' ')
  [ -z "$domains" ] || echo "search ${domains% }" # six: what older C libraries read
  for server in ${NAMESERVERS:-$dns}; do echo "nameserver $server"; done
} >"$RUN/resolv.conf"
cp "$RUN/resolv.conf" "${ETC:-/etc}/resolv.conf"
echo "$ip/$mask" >"$RUN/address"
