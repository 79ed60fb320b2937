#!/bin/sh
# What udhcpc calls.
# shellcheck disable=SC2154 # udhcpc gives them: interface ip mask router
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
[ -z "$router" ] || ip route add default via "${router%% *}" dev "$interface"
