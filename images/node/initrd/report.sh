# shellcheck shell=sh
# Events for the service (netboot.lifecycle.events.BootEvent). Each is a file first, so that a service that is away for a
# while still gets all of them, in order, with the times at which they happened; the root's units send what is left.
# Nothing here ever stops a boot.

report() { # PHASE DETAIL
  [ -n "$BOOT" ] || return 0
  read_uptime
  detail=$2
  case $detail in # most are plain already, and a process is dear where a machine is emulated
    *[!\ !#-[\]-~]*) detail=$(printf '%s' "$detail" | tr '"\\\n' "'/ " | tr -cd ' -~') ;;
  esac
  [ "${#detail}" -le 300 ] || detail=$(printf %.300s "$detail")
  events=0 # of all that report: the clock has hundredths
  [ ! -s "$RUN/reported" ] || read -r events <"$RUN/reported"
  events=$((events + 1))
  echo "$events" >"$RUN/reported"
  name=$RUN/events/$(printf '%013d-%03d-%d' "$milliseconds" "$events" $$)
  {
    who
    printf ',"phase":"%s","uptime_ms":%d,"detail":"%s"}' "$1" "$milliseconds" "$detail"
  } >"$name.new"
  mv "$name.new" "$name.json"
}

read_uptime() { # sets milliseconds, since the kernel started
  read -r uptime _ </proc/uptime
  milliseconds=$((${uptime%.*} * 1000 + 1${uptime#*.} * 10 - 1000))
}

who() { # the beginning of every body: which machine it is
  printf '{"mac":%s,"machine":%s' "${MAC:+\"}${MAC:-null}${MAC:+\"}" "${NAME:+\"}${NAME:-null}${NAME:+\"}"
}

end_of() { # BYTES: the end of stdin, printable ASCII and line ends alone, as it is within a string of JSON
  tr '\t' ' ' | tr -cd '\n -~' | tail -c "$1" | sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{ printf "%s\\n", $0 }'
}

deliver() { # send what waits, oldest first; stop at the first that cannot be sent now
  mkdir "$RUN/delivering" 2>/dev/null || return 0
  while :; do # looked for anew each time: what is reported meanwhile goes too
    for event in "$RUN"/events/*.json; do break; done
    [ -e "$event" ] || break
    tries=1
    until post "$event"; do
      [ "$tries" -lt 3 ] || break 2
      pause $((tries * 2))
      tries=$((tries + 1))
    done
  done
  rmdir "$RUN/delivering"
}

post() { # FILE: 1 when trying again could help
  send "$1" events "an event"
  [ $? != 1 ] && rm -f "$1"
}

send() { # FILE WHERE WHAT: 0 the service has it; 1 trying again could help; 2 it will not take it (said, unless WHAT is empty)
  answer=$(timeout 5 "$BUSYBOX" wget -q -O - --header 'Content-Type: application/json' --post-file "$1" \
    "$REPORT/v1/boots/$BOOT/$2" 2>&1) && return 0
  case $answer in
    *'HTTP/1.'?' 408'* | *'HTTP/1.'?' 429'*) return 1 ;;
    *'HTTP/1.'?' 4'*)
      [ -z "$3" ] || say "the service refuses $3: $answer"
      return 2
      ;;
    *) return 1 ;;
  esac
}

drain() { # SECONDS: wait at most so long until nothing waits any more
  deliver &
  left=$(($1 * 10))
  while [ "$left" -gt 0 ]; do
    for event in "$RUN"/events/*; do break; done
    [ -e "$event" ] || break
    sleep 0.1
    left=$((left - 1))
  done
}
