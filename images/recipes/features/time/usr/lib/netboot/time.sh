#!/bin/sh
# Writes chronyd's servers: those of the site bundle, whose signature the initrd has verified; where it names none, those of DHCP.
# What a lease says anybody on the wire may have said: names and addresses only, eight at most.
run=${NETBOOT_RUN:-/run}
sources=$run/chrony-dhcp/netboot.sources

of_site() { # the bundle is canonical JSON: "key": can only be a key
  sed -n 's/.*"time_servers":\["\([^]]*\)"\].*/\1/p' "$run/netboot/site.json" 2>/dev/null | sed 's/","/\n/g'
}

of_dhcp() { # networkd's leases, of all cards, and what it has by DHCPv6, for which there is no file of leases
  cat "$run"/systemd/netif/leases/* "$run"/systemd/netif/links/* 2>/dev/null | sed -n 's/^NTP=//p' | tr ' ' '\n'
}

listed() { # WHOSE, servers on stdin; chrony knows comments only as lines
  LC_ALL=C grep -Ex '[0-9A-Za-z][0-9A-Za-z.:-]{0,252}' | LC_ALL=C sort -u | head -n 8 | sed "s/.*/server & iburst/; 1i # $1"
}

new=$(of_site | listed site)
[ -n "$new" ] || new=$(of_dhcp | listed DHCP)
[ "$new" != "$(cat "$sources" 2>/dev/null)" ] || exit 0
if [ -z "$new" ]; then
  rm -f "$sources"
else
  mkdir -p "${sources%/*}"
  echo "$new" >"$sources.new"
  mv "$sources.new" "$sources"
  echo "$new"
fi
systemctl --no-block start chrony.service
chronyc reload sources >/dev/null 2>&1 || true # it reads them itself if it starts just now
