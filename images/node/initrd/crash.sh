# shellcheck shell=sh
# What a kernel left when it crashed: firmware keeps the end of its log (pstore: ERST, EFI variables) over a restart. It
# is sent like an event, and removed only when the service has it: nothing is lost, and the store does not fill up.
# Here and not in the root alone, for a root may be what crashes; the root's units send what the initrd could not.

PSTORE=${PSTORE:-/sys/fs/pstore}
CRASH_BYTES=16000 # of one text, at most: the service takes 16 KiB

send_crashes() { # once the service is known by the signed bundle: what a kernel said is not for anybody's ears
  {
    mount -t pstore pstore "$PSTORE" 2>/dev/null # it is mounted already, or this kernel has none
    deliver_crashes
  } &
}

deliver_crashes() { # each crash by itself, the earliest first; what cannot be sent now stays where it is
  mkdir "$RUN/delivering-crashes" 2>/dev/null || return 0
  # shellcheck disable=SC2086 # words
  crashes | while read -r seconds entries; do
    crash_report "$seconds" $entries >"$RUN/crash.json"
    send "$RUN/crash.json" crashes "the end of a log of $(date -u -d "@$seconds" '+%F %T')" </dev/null
    case $? in
      0)
        say "the service has the end of the log of a kernel that crashed: $entries"
        (cd "$PSTORE" && rm -f $entries) || say "its firmware does not forget it: each boot will send it again"
        ;;
      1) break ;;
    esac
  done
  rm -f "$RUN/crash.json"
  rmdir "$RUN/delivering-crashes"
}

crashes() { # a line each: when (seconds since 1970), then its entries in the order of their text
  # An entry begins with a line like `Panic#1 Part2`: the log from its end backwards, in pieces. Others are not the log
  # of a crash, or compressed in a way that this kernel does not know; they stay.
  for entry in "$PSTORE"/dmesg-*; do
    [ -f "$entry" ] || continue
    head=$(head -n 1 "$entry" | tr -cd ' -~')
    ! matches "$head" '[A-Z][a-z]+#[0-9]+ Part[0-9]+' || echo "$(stat -c %Y "$entry") $head ${entry##*/}"
  done | sort -t ' ' -k1,1n -k2,2 -k3.5,3n | awk '
    { part = substr($3, 5) + 0 }
    NR > 1 && ($2 != whose || part <= last) { print when, entries; entries = "" }
    { when = $1; whose = $2; last = part; entries = $4 " " entries }
    END { if (NR) print when, entries }'
}

crash_report() { # SECONDS ENTRY...: the body (netboot.lifecycle.events.CrashReport); a text that is too long loses its beginning
  who
  printf ',"crashed_ms":%s,"text":"' "${1}000"
  shift
  for entry in "$@"; do tail -n +2 "$PSTORE/$entry"; done | end_of "$CRASH_BYTES"
  printf '"}'
}
