# shellcheck shell=sh disable=SC2012,SC2034,SC2097,SC2098,SC2153 # names are numbers; the parts share variables
# The root image: its chunks from several origins at once, each verified as it comes (stream.sh). A slot is a connection; its worker
# goes on to the next origin when its own is of no use. What is verified stays. In $FETCH: good ("CHUNK SLOT ORIGIN"),
# damaged ("CHUNK ORIGIN"), claims/CHUNK and again/CHUNK (links: one slot's), claimed (what next.awk sees of them), and of a slot
# alive, pid, part, outcome and window. Processes are dear where a machine is emulated: few are started for a chunk.

STALL_SECONDS=10 STALL_BYTES=65536 # an origin that brings less than this in so long has failed
MOST_SLOTS=4 MOST_WAITING=1800     # seconds that an origin may ask us to wait while it brings nothing
SLOWEST=10 LEAST_OF_LINK=20        # left below a tenth of the fastest; below a twentieth of the link another joins in

fetch_root() {
  FILE=$RUN/image/root.img FETCH=$RUN/image/fetch LIST=$RUN/manifest.json.chunks started=$(date +%s)
  make_space || return 1
  begin_fetch
  slot=0 workers=''
  while [ "$slot" -lt "$MOST_SLOTS" ]; do
    slot=$((slot + 1))
    work &
    workers="$workers $!"
  done
  watch_fetch &
  workers="$workers $!"
  while read -r _ <&3; do # a worker has ended
    if [ "$(good_count)" -ge "$COUNT" ] || [ -z "$(alive)" ]; then break; fi
  done
  end_fetch
  [ "$(good_count)" -ge "$COUNT" ] || not_all || return 1
  report ImageFetched "$SIZE bytes in $(($(date +%s) - started)) s from $(awk '!seen[$3]++ {print $3}' "$FETCH/good" | tr '\n' ' ')"
  deliver &
}

begin_fetch() {
  mkdir -p "$FETCH" && mv "$FETCH/good" "$RUN/image/good" 2>/dev/null
  rm -rf "$FETCH"
  mkdir -p "$FETCH/claims" "$FETCH/again" "$FETCH/taken"
  mv "$RUN/image/good" "$FETCH/good" 2>/dev/null || : >"$FETCH/good"
  : >"$FETCH/damaged"
  : >"$FETCH/left"
  : >"$FETCH/claimed"
  mkfifo "$FETCH/ended" && exec 3<>"$FETCH/ended"
  # As many as are preferred alike; two to a single one, for a processor each to verify
  least=$(nproc)
  [ "$least" -lt 2 ] || least=2
  SLOTS=$((PREFERRED > least ? PREFERRED : least))
  echo "$SLOTS" >"$FETCH/wanted"
  slot=0
  while [ "$slot" -lt "$SLOTS" ] && [ "$slot" -lt "$MOST_SLOTS" ]; do
    slot=$((slot + 1))
    echo "alive $slot -" >"$FETCH/alive.$slot"
  done
}

end_fetch() {
  exec 3>&-
  # shellcheck disable=SC2086 # words
  kill $workers 2>/dev/null
  for pid in "$FETCH"/pid.*; do
    [ ! -s "$pid" ] || kill -KILL "-$(cat "$pid")" 2>/dev/null
  done
  rm -rf "$FETCH"/part.* "$FETCH"/alive.* "$FETCH"/pid.*
}

good_count() { sort -u -n -k1,1 "$FETCH/good" | wc -l; }

alive() { cat "$FETCH"/alive.* 2>/dev/null; }

not_all() {
  left=$(sort -u "$FETCH/left" | sed '$!s/$/;/' | tr '\n' ' ' | sed 's/ $//')
  chunk=$(awk -v good="$FETCH/good" 'BEGIN {while ((getline <good) > 0) has[$1]} !($1 in has) {print $1; exit}' "$FETCH/damaged")
  [ -z "$chunk" ] || because "ImageRefused: chunk $chunk of the root image is damaged at every origin that sends it: $left" || return 1
  because "cannot fetch the root image, it stays at $(good_count) of $COUNT chunks: $left"
}

work() { # as `slot`, until nothing is left to do, or no origin to do it with
  until [ "$slot" -le "$(cat "$FETCH/wanted")" ]; do sleep 0.2; done
  while take_origin; do
    echo "alive $slot $origin" >"$FETCH/alive.$slot"
    bring && break
    say "left $origin: $error"
    echo "$origin: $error" >>"$FETCH/left"
    rm -f "$FETCH/part.$slot".*
  done
  rm -f "$FETCH/alive.$slot"
  echo >&3
}

take_origin() { # sets origin to the next that no slot has had; a second connection to one that is alone shares it
  if [ "$slot" -gt "$PREFERRED" ] && [ "$slot" -le "$SLOTS" ] && mkdir "$FETCH/taken/shared.$slot" 2>/dev/null; then
    origin=${ORIGINS%% *}
    return
  fi
  number=0
  for origin in $ORIGINS; do
    number=$((number + 1))
    ! mkdir "$FETCH/taken/$number" 2>/dev/null || return 0
  done
  return 1
}

bring() { # chunks from `origin`: 0 when there is no more to do, 1 with `error` when it is of no use any more
  failed=0 waited=0 before=$(received "$slot")
  while run=$(next_run) && [ -n "$run" ]; do
    if [ "$run" = wait ]; then
      sleep 0.5 # what is missing is on its way to another slot
      continue
    fi
    # shellcheck disable=SC2086 # words
    connect $run
    read -r outcome <"$FETCH/outcome.$slot"
    [ "$outcome" = "done" ] || judge_outcome || return 1
  done
}

next_run() {
  awk -v count="$COUNT" -v slot="$slot" -v origin="$origin" -f "$LIB/next.awk" \
    "$FETCH/good" "$FETCH/damaged" "$FETCH/claimed" "$FETCH"/alive.*
}

connect() { # FIRST LAST, or FIRST again: leaves its outcome, and no claim
  echo "done" >"$FETCH/outcome.$slot" # if another was quicker to claim it
  if [ "$2" = again ]; then
    ln -s "$slot" "$FETCH/again/$1" 2>/dev/null || return 0
    echo "again $1" >>"$FETCH/claimed"
    set -- "$1" "$1"
  else
    ln -s "$slot" "$FETCH/claims/$1" 2>/dev/null || return 0
    echo "claim $1 $slot" >>"$FETCH/claimed"
  fi
  echo >"$FETCH/outcome.$slot"
  for part in "$FETCH/part.$slot".*; do [ "$part" = "$FETCH/part.$slot.$1" ] || rm -f "$part"; done
  split_url "$origin/v1/blobs/$ROOT"
  alone=alone
  for other in "$FETCH"/alive.*; do [ "$other" = "$FETCH/alive.$slot" ] || alone=''; done
  ALONE=$alone LIB=$LIB FETCH=$FETCH FILE=$FILE LIST=$LIST SIZE=$SIZE CHUNK=$CHUNK \
    setsid "$BUSYBOX" nc -w 10 "$host" "$port" -e "$BUSYBOX" sh "$LIB/stream.sh" \
    "$slot" "$origin" "$authority" "$path" "$1" "$2" 2>"$FETCH/error.$slot" &
  echo $! >"$FETCH/pid.$slot"
  wait $!
  : >"$FETCH/pid.$slot"
}

release() { # what this slot had claimed and not brought
  echo "free $slot" >>"$FETCH/claimed"
  for claim in $(ls -l "$FETCH/claims" | awk -v slot="$slot" '$NF == slot {print $(NF - 2)}'); do rm "$FETCH/claims/$claim"; done
}

judge_outcome() { # of a connection that did not end well: 0 to go on with this origin, 1 with `error` to leave it
  release
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
    "leave: "*) error=${outcome#leave: } failed=3 ;;
    *)
      error=${outcome:-no answer} failed=$((failed + 1))
      [ "$failed" -ge 3 ] || pause $((1 << failed - 1))
      ;;
  esac
  [ "$failed" -lt 3 ]
}

wait_for_origin() { # SECONDS STATUS: never less than was asked for, and not all machines at once
  waited=$((waited + ${1%% *}))
  if [ "$waited" -gt "$MOST_WAITING" ]; then
    error="${1#* }, after $MOST_WAITING seconds of waiting" failed=3
    return 1
  fi
  say "$origin is busy (${1#* }), asking it again in ${1%% *} seconds or a little more"
  pause $((${1%% *} * 2))
}

received() { # SLOT: bytes so far
  chunks=$(awk -v slot="$1" '$2 == slot {n++} END {print n + 0}' "$FETCH/good")
  part=$(stat -c %s "$FETCH/part.$1".* 2>/dev/null | awk '{n += $1} END {print n + 0}')
  echo $((chunks * CHUNK + part))
}

verify_root() { # every chunk was, when it came: counted once more, because this is what everything stands on
  verified=$(good_count)
  [ "$verified" -eq "$COUNT" ] || because "ImageRefused: $verified of $COUNT chunks could be verified" || return 1
  again=$(awk 'NR == FNR {from[$1] = $3; next} !seen[$1]++ {printf ", chunk %d again from %s", $1, from[$1]}' \
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
