# shellcheck shell=sh
# PHASE: reached now; the console gets it with the seconds that the kernel has run.
read -r uptime _ </proc/uptime
echo "floor: $1 $uptime" >/dev/console
