# shellcheck shell=sh disable=SC2034 # what is sourced below uses them
# [SECONDS]: send the end of the console while this boot is not over: half to all of so many seconds after the switch, then at
# distances that grow. A boot that is over by then sends nothing. Uses only what the initrd left in /run/netboot.
RUN=/run/netboot BUSYBOX=/run/netboot/busybox SYSTEM=/usr/lib/systemd/system
# shellcheck source=/dev/null
for part in boot.env words.sh report.sh console.sh; do . "$RUN/$part"; done

over() { # multi-user.target was reached and that is told; and where the image joins a cluster, it has
  systemctl --quiet is-active netboot-booted.service || return 1
  [ ! -e "$SYSTEM/netboot-join.service" ] || systemctl --quiet is-active netboot-join.service
}

lines() { # what a console would show: of the kernel, of systemd, of netboot's own units, and what is waited for. Not what other
  # services say, which may hold secrets
  set --
  for unit in "$SYSTEM"/netboot-*.service; do set -- "$@" "_SYSTEMD_UNIT=${unit##*/}"; done
  timeout 20 journalctl --quiet --no-pager --boot --lines=200 --output=short-monotonic _TRANSPORT=kernel + _PID=1 + "$@"
  systemctl --plain --no-legend --no-pager list-jobs |
    awk '$4 == "running" { print "systemd: A " $3 " job is running for " $2 }'
}

seconds=${1:-80}
pause "$seconds"
until over; do
  send_console lines
  longer
  pause "$seconds"
done
