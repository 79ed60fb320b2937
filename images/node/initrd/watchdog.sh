# shellcheck shell=sh disable=SC2154 # the parts share variables
# The board's watchdog: a timer that resets the machine unless it is fed. docs/boot-stage.md, A kernel that hangs

FED_SECONDS=60 # the same as systemd's in the root (system.conf.d/10-netboot.conf)

arm_watchdog() { # beside everything else; a board without one, or whose driver is not here, boots as ever
  device=${WATCHDOG:-/dev/watchdog}
  [ -e "$device" ] || return 0
  case " $(cat "${1:-/proc/cmdline}") " in *' systemd.watchdog_sec=off '* | *' systemd.watchdog_sec=0 '*) return 0 ;; esac
  watchdog -F -T "$FED_SECONDS" -t 15 "$device" &
  echo $! >"$RUN/watchdog.pid"
}

disarm_watchdog() { # systemd, which goes on with it, must find it closed
  [ -e "$RUN/watchdog.pid" ] || return 0
  kill "$(cat "$RUN/watchdog.pid")"
  rm "$RUN/watchdog.pid"
}
