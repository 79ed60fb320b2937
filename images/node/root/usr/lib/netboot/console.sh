# shellcheck shell=sh disable=SC2034 # what is sourced below uses them
# [SECONDS]: send the end of the console while this boot is not over: half to all of so many seconds after the switch, then at
# distances that grow. A boot that is over by then sends nothing. Uses only what the initrd left in /run/netboot.
RUN=/run/netboot BUSYBOX=/run/netboot/busybox SYSTEM=/usr/lib/systemd/system
# shellcheck source=/dev/null
for part in boot.env words.sh report.sh console.sh; do . "$RUN/$part"; done

over() { # multi-user.target was reached, whether that could be told or not; and where the image joins a cluster, it has
  reached multi-user.target || return 1
  [ ! -e "$SYSTEM/netboot-join.service" ] || reached netboot-join.service
}

reached() { timeout 20 systemctl --quiet is-active "$1"; }

lines() { # what a console would show: of the kernel, of systemd, of netboot's own units, and what is waited for. Not what others
  # say, which may hold secrets: services, whoever writes into the kernel's log, its audit, whole command lines as names of units
  set --
  for unit in "$SYSTEM"/netboot-*.service; do set -- "$@" "_SYSTEMD_UNIT=${unit##*/}"; done
  timeout 20 journalctl --quiet --no-pager --boot --lines=200 --output=short-monotonic _TRANSPORT=kernel \
    SYSLOG_IDENTIFIER=kernel SYSLOG_IDENTIFIER=netboot SYSLOG_IDENTIFIER=systemd + _PID=1 + "$@" |
    grep -Ev ' kernel: audit: | systemd\[1\]: .*run-[0-9a-z-]+\.(service|scope|timer|path|socket)'
  timeout 20 systemctl --plain --no-legend --no-pager list-jobs |
    awk '$4 == "running" { print "systemd: A " $3 " job is running for " $2 }'
}

seconds=${1:-80}
pause "$seconds"
until over; do
  send_console lines
  longer
  pause "$seconds"
done
