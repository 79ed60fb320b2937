# shellcheck shell=sh disable=SC2154,SC3045 # the parts share variables; busybox's `read` has -t
# The end of the console for the service while a boot is not over: with each failure, and where it takes long. The newest is what
# counts: what could not be sent is not kept. Nothing here ever delays or stops a boot. It goes where events go, before the signed
# bundle is known too, as a crash does not: a boot that gets no bundle is one whose lines an operator wants, and they are of this
# boot alone, in which nothing but this initrd has run (docs/decisions/242).

CONSOLE_BYTES=4000                 # of one text, at most: the service takes 4096 characters
CONSOLE_FIRST=${CONSOLE_FIRST:-40} # seconds at most, half of it at least, before the first; each next wait is twice as long
CONSOLE_LAST=1800                  # until it is this
console_named='the end of the console'

watch_console() { # [FILE]: once there is a network, and again when the signed bundle has named the service: in the background
  # Of a machine that nobody has declared nobody waits for the end of its boot.
  case " $(cat "${1:-/proc/cmdline}") " in *' systemd.unit=netboot-discovery.target '*) return 0 ;; esac
  mkdir -p "$RUN/console"
  echo "$REPORT" >"$RUN/console/service.new" && mv "$RUN/console/service.new" "$RUN/console/service"
  [ -p "$RUN/console/failed" ] || ! mkfifo "$RUN/console/failed" || { follow_console & } 5<>"$RUN/console/failed"
  return 0
}

show_console() { # at once, after a failure. Both ends of the pipe are opened, for to open one waits for who opens the other
  [ ! -p "$RUN/console/failed" ] || echo 1<>"$RUN/console/failed"
}

follow_console() { # waits by a pipe and not by `sleep`: who is ended while it waits leaves no process behind
  seconds=$CONSOLE_FIRST
  while :; do
    read -r -t "$(drawn "$seconds")" _ <&5 || longer # none has failed meanwhile
    read -r REPORT <"$RUN/console/service" && send_console dmesg -s 16384
  done
}

longer() { # the next wait
  seconds=$((seconds * 2 < CONSOLE_LAST ? seconds * 2 : CONSOLE_LAST))
}

send_console() { # COMMAND...: the end of what it prints (netboot.lifecycle.events.ConsoleReport), unless the service has just that
  shown=$("$@" 2>/dev/null | end_of "$CONSOLE_BYTES")
  if [ -z "$shown" ] || [ "$shown" = "${sent_console:-}" ]; then return 0; fi
  read_uptime
  {
    who
    printf ',"uptime_ms":%d,"text":"%s"}' "$milliseconds" "$shown"
  } >"$RUN/console.json"
  send "$RUN/console.json" console "$console_named"
  case $? in
    0) sent_console=$shown ;;
    2) sent_console=$shown console_named='' ;; # one of before knows no such thing: that is said once
  esac
}
