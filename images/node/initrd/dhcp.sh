#!/bin/sh
# What udhcpc calls: sets address, routes and name servers, and tells the root's systemd-networkd to go on with the lease.
# shellcheck disable=SC2154 # udhcpc gives them: interface ip mask router dns mtu staticroutes
case $1 in
  bound | renew) ;;
  *) exit 0 ;;
esac

[ -z "$mtu" ] || ip link set "$interface" mtu "$mtu"
ip addr flush dev "$interface"
ip addr add "$ip/$mask" broadcast + dev "$interface"
if [ -n "$staticroutes" ]; then # RFC 3442: then the router option counts for nothing
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
fi

for server in $dns; do echo "nameserver $server"; done >"$RUN/resolv.conf"
cp "$RUN/resolv.conf" "${ETC:-/etc}/resolv.conf"
echo "$ip/$mask" >"$RUN/address"

# Kernels before 6.2 cannot rename a card that is up: udev would leave it half-renamed, and networkd would wait for ever.
# So it keeps the kernel's name on every kernel; the predictable names become its other names.
units=${NETWORKD:-/run/systemd/network}
mkdir -p "$units"
mac=$(cat "/sys/class/net/$interface/address")
cat >"$units/10-netboot.link" <<END
[Match]
PermanentMACAddress=$mac
[Link]
AlternativeNamesPolicy=database onboard slot path mac
END
# The same client identifier as udhcpc's, so that the server renews this lease; static: the address stays until it has.
cat >"$units/10-netboot.network" <<END
[Match]
PermanentMACAddress=$mac
[Network]
Description=The card that fetched the image
DHCP=ipv4
KeepConfiguration=static
[DHCPv4]
ClientIdentifier=mac
UseHostname=no
END
