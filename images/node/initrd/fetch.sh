# shellcheck shell=sh disable=SC2034,SC2097,SC2098,SC2153 # the parts share variables
# The root image: runs of chunks from several origins at once, each chunk verified as it comes (stream.sh). A slot is a connection at
# a time; its worker goes on to the next origin when its own is of no use. What is verified stays. In $FETCH: good ("CHUNK ORIGIN"),
# damaged ("CHUNK ORIGIN"), claimed (who brings what, see next.awk), order (origins, a line each), digests/CHUNK, and of a slot
# alive, last (of its run), pid, part, outcome and window. Processes are dear where a machine is emulated: few are started for a chunk.

STALL_SECONDS=10 STALL_BYTES=65536 # an origin that brings less than this in so long has failed
CONNECT_SECONDS=4                  # three SYNs; who has answered none of them is dark, and asked again when there is no other
LOOK_UP_SECONDS=6                  # more for a name, which nc looks up meanwhile: the second name server is asked after five
MOST_SLOTS=4 MOST_WAITING=1800     # seconds that an origin may ask us to wait while it brings nothing
LONG_WAIT=60                       # after so many of them another joins in
SLOWEST=10 LEAST_OF_LINK=20        # left below a tenth of the fastest; below a twentieth of the link another joins in
LEAST_LINK=100                     # Mbit/s of a link of which nobody knows

fetch_root() {
  FILE=$RUN/image/root.img FETCH=$RUN/image/fetch started=$(date +%s)
  read -r began _ </proc/uptime
  began=${began%.*}
  SLOTS=$((PREFERRED < MOST_SLOTS ? PREFERRED : MOST_SLOTS)) # to begin with
  VERIFIERS=$(($(nproc) / SLOTS)) # chunks of a slot that are verified while the next ones come
  VERIFIERS=$((VERIFIERS < 1 ? 1 : VERIFIERS < 8 ? VERIFIERS : 8))
  # shellcheck disable=SC2086 # words
  set -- $ORIGINS
  make_space $(((SLOTS * (VERIFIERS + 1) + 2 * (($# < MOST_SLOTS ? $# : MOST_SLOTS) - SLOTS)) * CHUNK >> 20)) || return 1
  begin_fetch
  slot=0 workers=''
  while [ "$slot" -lt "$SLOTS" ]; do start_worker; done
  watch_fetch &
  workers="$workers $!"
  while read -r word <&3; do # a worker has ended, or one more is wanted
    [ "$word" != more ] || [ "$slot" -ge "$MOST_SLOTS" ] || start_worker
    if [ "$(good_count)" -ge "$COUNT" ] || [ -z "$(alive)" ]; then break; fi
  done
  end_fetch
  [ "$(good_count)" -ge "$COUNT" ] || not_all || return 1
  report ImageFetched "$SIZE bytes in $(($(date +%s) - started)) s from $(awk '!seen[$2]++ {print $2}' "$FETCH/good" | tr '\n' ' ')"
  deliver &
}

begin_fetch() {
  mkdir -p "$FETCH" && mv "$FETCH/good" "$RUN/image/good" 2>/dev/null
  rm -rf "$FETCH"
  mkdir -p "$FETCH/digests" "$FETCH/taken"
  mv "$RUN/image/good" "$FETCH/good" 2>/dev/null || : >"$FETCH/good"
  for file in damaged left claimed; do : >"$FETCH/$file"; done
  awk -v folder="$FETCH/digests/" '{print $2 >(folder $1); close(folder $1)}' "$RUN/manifest.json.chunks"
  echo "$ORIGINS" | tr ' ' '\n' | awk -v dark="$RUN/image/dark" 'BEGIN {while ((getline <dark) > 0) late[$1]}
    $1 in late {end = end $1 "\n"; next} {print} END {printf "%s", end}' >"$FETCH/order" # dark in an earlier try of this boot: last
  mkfifo "$FETCH/events" "$FETCH/turn" && exec 3<>"$FETCH/events" 4<>"$FETCH/turn"
  echo >&4
  # All are known before the first of them asks for its share
  slot=0
  while [ "$slot" -lt "$SLOTS" ]; do
    slot=$((slot + 1))
    echo "alive $slot -" >"$FETCH/alive.$slot"
  done
}

start_worker() {
  slot=$((slot + 1))
  [ "$slot" -le "$SLOTS" ] || VERIFIERS=1 # there is room for so many parts
  echo "alive $slot -" >"$FETCH/alive.$slot"
  work &
  workers="$workers $!"
}

end_fetch() {
  exec 3>&- 4>&-
  # shellcheck disable=SC2086 # words
  kill $workers 2>/dev/null
  for pid in "$FETCH"/pid.*; do
    [ ! -s "$pid" ] || kill -KILL "-$(cat "$pid")" 2>/dev/null
  done
  rm -rf "$FETCH"/part.* "$FETCH"/partial.* "$FETCH"/sum.* "$FETCH"/alive.* "$FETCH"/pid.*
}

good_count() { sort -u -n -k1,1 "$FETCH/good" | wc -l; }

alive() { cat "$FETCH"/alive.* 2>/dev/null; }

not_all() {
  left=$(sort -u "$FETCH/left" | sed '$!s/$/;/' | tr '\n' ' ' | sed 's/ $//')
  chunk=$(sort -n "$FETCH/damaged" | awk -v good="$FETCH/good" 'BEGIN {while ((getline <good) > 0) has[$1]} !($1 in has) {print $1; exit}')
  [ -z "$chunk" ] || because "ImageRefused: chunk $chunk of the root image is damaged at every origin that sends it: $left" || return 1
  because "cannot fetch the root image, it stays at $(good_count) of $COUNT chunks: $left"
}

work() { # as `slot`, until nothing is left to do, or no origin to do it with
  while take_origin; do
    echo "alive $slot $origin" >"$FETCH/alive.$slot"
    bring && break
    say "left $origin: $error"
    echo "$origin: $error" >>"$FETCH/left"
    rm -f "$FETCH/part.$slot".* "$FETCH/partial.$slot".* # nobody is blamed for what another has sent
  done
  rm -f "$FETCH/alive.$slot" "$FETCH/pid.$slot"
  echo >&3
}

take_origin() { # sets origin to the next that no slot has had
  number=0
  while read -r origin; do
    number=$((number + 1))
    ! mkdir "$FETCH/taken/$number" 2>/dev/null || return 0
  done <"$FETCH/order"
  return 1
}

bring() { # chunks from `origin`: 0 when there is no more to do, 1 with `error` when it is of no use any more
  failed=0 waited=0 before=$(received "$slot")
  while take_run; do
    if [ "$run" = wait ]; then
      sleep 0.3 # what is missing is on its way to another slot
    else
      # shellcheck disable=SC2086 # words
      connect $run
      read -r outcome <"$FETCH/outcome.$slot"
      [ "$outcome" != "done" ] || continue
      judge_outcome || return 1
    fi
    : >"$FETCH/rested.$slot" # so what it has brought says nothing of its speed
  done
}

take_run() { # sets run to what this slot brings next, "FIRST LAST" or "wait", and notes it; 1: there is no more to do
  read -r _ <&4 # one slot at a time
  read -r now _ </proc/uptime
  # alive.* by `cat`: slots end meanwhile, and busybox's awk ends with a file that it cannot open
  run=$(alive | awk -v count="$COUNT" -v slot="$slot" -v origin="$origin" -v seconds="$((${now%.*} - began))" -f "$LIB/next.awk" \
    "$FETCH/good" "$FETCH/damaged" "$FETCH/claimed" -)
  # shellcheck disable=SC2086 # words
  set -- $run
  case $run in
    '' | wait) ;;
    *again)
      echo "again $1 $slot" >>"$FETCH/claimed"
      run="$1 $1"
      ;;
    *)
      echo "claim $1 $2 $slot" >>"$FETCH/claimed"
      [ -z "${3:-}" ] || echo "$4" >"$FETCH/last.$3"
      run="$1 $2"
      ;;
  esac
  echo >&4
  [ -n "$run" ]
}

connect() { # FIRST LAST: leaves its outcome
  : >"$FETCH/outcome.$slot"
  echo "$2" >"$FETCH/last.$slot"
  split_url "$origin/v1/blobs/$ROOT"
  case $host in
    *:*) within=$CONNECT_SECONDS ;;
    *[!0-9.]*) within=$((CONNECT_SECONDS + LOOK_UP_SECONDS)) ;;
    *) within=$CONNECT_SECONDS ;;
  esac
  alone=alone
  for other in "$FETCH"/alive.*; do [ "$other" = "$FETCH/alive.$slot" ] || alone=''; done
  ALONE=$alone LIB=$LIB FETCH=$FETCH FILE=$FILE SIZE=$SIZE CHUNK=$CHUNK VERIFIERS=$VERIFIERS \
    setsid "$BUSYBOX" nc -w "$within" "$host" "$port" -e "$BUSYBOX" sh "$LIB/stream.sh" \
    "$slot" "$origin" "$authority" "$path" "$1" "$2" 2>"$FETCH/error.$slot" &
  echo $! >"$FETCH/pid.$slot"
  wait $!
  : >"$FETCH/pid.$slot"
}

judge_outcome() { # of a connection that did not end well: 0 to go on with this origin, 1 with `error` to leave it
  echo "free $slot" >>"$FETCH/claimed" # what it has not brought
  now=$(received "$slot")
  [ "$now" -le "$before" ] || failed=0 waited=0 before=$now
  outcome=${outcome:-$(tail -n 1 "$FETCH/error.$slot")}
  case $outcome in
    "busy "*) wait_for_origin "${outcome#busy }" && return ;;
    "damaged "*)
      say "chunk ${outcome#damaged } from $origin is damaged, it will be fetched again"
      error="sends damaged chunks"
      [ "$(awk -v origin="$origin" '$2 == origin' "$FETCH/damaged" | wc -l)" -lt 2 ]
      return
      ;;
    "nc: timed out" | "nc: "*": No route to host" | "nc: "*" unreachable") # dark
      error=$outcome failed=$((failed + 1))
      [ "$outcome" != "nc: timed out" ] || error="no answer in $within seconds"
      echo "$origin" >>"$RUN/image/dark"
      if spare; then
        ask_again_last
      elif [ "$failed" -lt 3 ]; then
        pause "$failed"
      fi
      ;;
    "later: "*)
      error=${outcome#later: }
      ask_again_last
      ;;
    "leave: "*) error=${outcome#leave: } failed=3 ;;
    *)
      error=${outcome:-no answer} failed=$((failed + 1))
      [ "$failed" -ge 3 ] || pause $((1 << failed - 1))
      ;;
  esac
  [ "$failed" -lt 3 ]
}

ask_again_last() { # once more, when all others have been
  failed=3
  [ "$(grep -cxF "$origin" "$FETCH/order")" -gt 1 ] || echo "$origin" >>"$FETCH/order"
}

wait_for_origin() { # SECONDS STATUS: never less than was asked for, and not all machines at once
  waited=$((waited + ${1%% *}))
  if [ "$waited" -gt "$MOST_WAITING" ]; then
    error="${1#* }, after $MOST_WAITING seconds of waiting" failed=3
    return 1
  fi
  say "$origin is busy (${1#* }), asking it again in ${1%% *} seconds or a little more"
  [ "$waited" -le "$LONG_WAIT" ] || ! spare || echo more >&3
  pause $((${1%% *} * 2))
}

received() { # SLOT: bytes so far
  chunks=$(awk -v slot="$1" '$3 == slot {n++} END {print n + 0}' "$FETCH/good")
  parts=$(stat -c %s "$FETCH/part.$1".* "$FETCH/partial.$1".* 2>/dev/null | awk '{n += $1} END {print n + 0}')
  echo $((chunks * CHUNK + parts))
}

verify_root() { # every chunk was, when it came: counted once more, because this is what everything stands on
  verified=$(good_count)
  [ "$verified" -eq "$COUNT" ] || because "ImageRefused: $verified of $COUNT chunks could be verified" || return 1
  again=$(awk 'NR == FNR {from[$1] = $2; next} !seen[$1]++ {printf ", chunk %d again from %s", $1, from[$1]}' \
    "$FETCH/good" "$FETCH/damaged")
  report ImageVerified "$COUNT chunks$again"
  deliver &
  say "root image verified: $COUNT chunks$again"
}

split_url() { # URL: sets host (IPv6 without brackets), port, authority (as the Host header has it) and path
  authority=${1#*://} port=80
  path=/${authority#*/}
  authority=${authority%%/*}
  host=$authority
  case $host in *:*[0-9]) port=${host##*:} host=${host%:*} ;; esac
  host=${host#\[} host=${host%\]}
}
