# shellcheck shell=sh disable=SC2034 # `ask` sets variables for its callers
# An HTTP request by hand, with the connection as stdin and stdout: busybox's wget refuses the answer to a Range header that
# it was given, and drops the headers of an answer that is an error. Read in by stream.sh and busy.sh, which nc starts.

LONGEST_WAIT=300 # seconds of one Retry-After

ask() { # AUTHORITY PATH [FIRST LAST]: sets status, range, length and wait (seconds, if a busy server says when to come back)
  printf 'GET %s HTTP/1.1\r\nHost: %s\r\n' "$2" "$1"
  [ -z "${3:-}" ] || printf 'Range: bytes=%d-%d\r\n' "$3" "$4"
  printf 'Connection: close\r\n\r\n'
  return_character=$(printf '\r')
  status='' range='' length='' wait='' retry='' date='' lines=0
  while IFS= read -r line && [ "$lines" -lt 100 ]; do
    line=${line%"$return_character"} lines=$((lines + 1))
    [ -n "$line" ] || break
    [ -n "$status" ] || { shown "$line" && status=$text; }
    case $line in
      [Cc]ontent-[Rr]ange:*) shown "${line#*: }" && range=$text ;;
      [Cc]ontent-[Ll]ength:*) shown "${line#*: }" && length=$text ;;
      [Rr]etry-[Aa]fter:*) retry=${line#*: } ;;
      [Dd]ate:*) date=${line#*: } ;;
    esac
  done
  case $status in
    'HTTP/1.'?' 503'* | 'HTTP/1.'?' 429'*) wait=$(seconds_until "$retry" "$date") ;;
  esac
}

shown() { # TEXT of a stranger: sets text, as a console may have it
  text=$1
  [ "${#text}" -le 100 ] || text=$(printf %.100s "$text")
  case $text in *[!\ -~]*) text=$(printf %s "$text" | tr -cd ' -~') ;; esac
}

seconds_until() { # RETRY-AFTER DATE: from 1 to LONGEST_WAIT; nothing if it cannot be read
  case $1 in
    '') return ;;
    *[!0-9]*) # a date, by the server's own clock: this machine's may be years wrong
      until=$(seconds_of "$1") && now=$(seconds_of "$2") || return
      seconds=$((until - now))
      ;;
    ????????*) seconds=$LONGEST_WAIT ;;
    *) seconds=$(printf %s "$1" | sed 's/^0*//') ;; # a shell takes 010 for eight
  esac
  seconds=${seconds:-0}
  [ "$seconds" -ge 1 ] || seconds=1
  echo $((seconds < LONGEST_WAIT ? seconds : LONGEST_WAIT))
}

seconds_of() { # HTTP-DATE, as RFC 9110 wants it sent
  [ -n "$1" ] && date -u -D '%a, %d %b %Y %H:%M:%S GMT' -d "$1" +%s 2>/dev/null
}
