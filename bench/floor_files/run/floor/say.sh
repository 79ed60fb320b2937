# shellcheck shell=sh
# PHASE: reached now; the console gets it with the seconds that the kernel has run, on a line of its own.
read -r uptime _ </proc/uptime
printf '\nfloor: %s %s\n' "$1" "$uptime" >/dev/console
