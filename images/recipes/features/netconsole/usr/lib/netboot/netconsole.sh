#!/bin/sh
# Sends the kernel's messages to netboot.netconsole=[PORT@]ADDRESS. The kernel's own argument wants the name of a card, and the
# MAC address of the next hop: left out, each message is a broadcast, which a router does not forward (RFC 1812, 4.2.3.1).
set -f
say() { echo "netboot-netconsole: $*"; }

asked=$(tr ' ' '\n' <"${NETBOOT_CMDLINE:-/proc/cmdline}" | sed -n 's/^netboot\.netconsole=//p' | tail -n 1 | tr -cd ' -~')
port=6666 to=$asked
case $asked in *@*) port=${asked%%@*} to=${asked#*@} ;; esac

if ! way=$(ip -o route get "$to" 2>&1); then
  say "no kernel messages to $asked: $way"
  exit 1
fi
word_after() { echo "$way" | sed -n "s/.* $1 \([^ ]*\).*/\1/p"; }
card=$(word_after dev) from=$(word_after src) hop=$(word_after via)
hop=${hop:-$to}

mac='' tries=0
while [ -z "$mac" ]; do
  if [ "$tries" -ge 50 ]; then
    say "no kernel messages to $asked: $hop does not answer on $card"
    exit 1
  fi
  tries=$((tries + 1))
  ip neigh replace "$hop" dev "$card" use 2>/dev/null # asks who has the address
  sleep 0.2
  mac=$(ip neigh show "$hop" dev "$card" | sed -n 's/.* lladdr \([0-9a-f:]*\).*/\1/p')
done

modprobe -r netconsole 2>/dev/null # of an earlier start
modprobe netconsole "netconsole=@$from/$card,$port@$to/$mac" || exit 1
say "kernel messages go to $to port $port (UDP), from $from by $card and $mac"
