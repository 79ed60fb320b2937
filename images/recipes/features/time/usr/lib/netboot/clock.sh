#!/bin/sh
# Waits until chronyd holds the clock, a minute at most; where nobody names a server there is nothing to wait for.
# The kubelet waits for this: few programs where the clock is right already, as it is as a rule.
say() { echo "netboot-clock: $*"; }

given=${NETBOOT_RUN:-/run}/chrony-dhcp/netboot.sources
named() { grep -qsE '^(server|pool|peer) ' "$given" "${NETBOOT_CONF:-/etc/chrony/sources.d}"/*.sources; }

# A lease that came while the path unit's service ran has started nothing.
named || systemctl start netboot-time.service
if ! named; then
  say "neither the site nor DHCP names a time server; the clock is as the service's time has it"
  exit 0
fi
right=
for checks in 1 20 20 20; do # a second apart
  chronyc waitsync "$checks" 1 0 1 >/dev/null && right=1 && break
  # The join agent may have set the clock since chronyd asked; it would ask again when its poll's minute is over.
  chronyc burst 4/4 >/dev/null 2>&1
done
if [ -z "$right" ]; then
  say "no time server has answered for a minute: $(chronyc -n -c sources 2>&1 | cut -d, -f3 | tr '\n' ' ')"
  exit 1
fi
server=$(chronyc -n -c tracking) # its second field
server=${server#*,}
[ ! -e "$given" ] || read -r _ whose <"$given"
say "the clock is right by the time server ${server%%,*} (of ${whose:-the image})"
