# shellcheck shell=sh
# The root image: one stream with resume, over the origins by turns; then every chunk against its digest; a damaged chunk
# again, alone, from another origin. What has arrived is never thrown away while it can be of use.

STALL_SECONDS=10 STALL_BYTES=65536 # an origin that brings less than this in so long is left
NEXT_ORIGIN=0

fetch_root() {
  FILE=$RUN/image/root.img
  make_space || return 1
  best=$(size_of "$FILE") barren=0 started=$(date +%s)
  while have=$(size_of "$FILE") && [ "$have" -lt "$SIZE" ]; do
    take_origin
    echo "$have $origin" >>"$RUN/origins"
    transfer "$origin/v1/blobs/$ROOT" || say "left $origin at $(size_of "$FILE") of $SIZE bytes: $error"
    if [ "$(size_of "$FILE")" -gt "$best" ]; then
      best=$(size_of "$FILE") barren=0
    else
      barren=$((barren + 1))
      [ "$barren" -lt $((3 * $(echo "$ORIGINS" | wc -w))) ] ||
        because "cannot fetch the root image, it stays at $best of $SIZE bytes; last: $origin: $error" || return 1
    fi
    [ "$(size_of "$FILE")" -ge "$SIZE" ] || pause $((barren < 5 ? 1 << barren : 30))
  done
  if [ "$have" -gt "$SIZE" ]; then
    rm "$FILE"
    because "ImageRefused: $origin sent more than the $SIZE bytes of the root image" || return 1
  fi
  report ImageFetched "$SIZE bytes in $(($(date +%s) - started)) s from $(cut -d' ' -f2 "$RUN/origins" | uniq | tr '\n' ' ')"
  deliver &
}

take_origin() { # sets origin to the next of them, in the bundle's order
  # shellcheck disable=SC2086 # words
  set -- $ORIGINS
  shift $((NEXT_ORIGIN % $#))
  NEXT_ORIGIN=$((NEXT_ORIGIN + 1))
  origin=$1
}

transfer() { # URL: go on where the file ends; 1 with `error` when it did not come to its end
  (ulimit -f $((SIZE / 512 + 1)) && exec "$BUSYBOX" wget -q -c -O "$FILE" "$1") 2>"$RUN/wget.log" &
  wget=$!
  watch_transfer "$wget" "$1" &
  watcher=$!
  wait "$wget"
  status=$?
  kill "$watcher" 2>/dev/null
  error=$(tail -n 1 "$RUN/wget.log")
  error=${error:-ended with status $status}
  [ "$status" = 0 ]
}

watch_transfer() { # PID URL: a line every few seconds; ends a transfer that stands still
  before=$(size_of "$FILE") seconds=0 window=$before
  while sleep 1; do
    seconds=$((seconds + 1)) now=$(size_of "$FILE")
    if [ $((seconds % 3)) = 0 ]; then
      say "root image: $((now >> 20)) of $((SIZE >> 20)) MiB from ${2%/v1/*}, $(((now - before) / 3 >> 10)) KiB/s"
      before=$now
    fi
    [ $((seconds % STALL_SECONDS)) = 0 ] || continue
    if [ $((now - window)) -lt "$STALL_BYTES" ] && [ "$now" -ge "$window" ]; then
      echo "less than $STALL_BYTES bytes came in $STALL_SECONDS seconds" >>"$RUN/wget.log"
      kill "$1"
      return
    fi
    window=$now
  done
}

verify_root() {
  [ "$(size_of "$FILE")" = "$SIZE" ] || fetch_root || return 1 # a repair may have cut it
  good_chunks >"$RUN/good"
  verified=$(wc -l <"$RUN/good") again=''
  for number in $(missing_chunks); do
    repair "$number" || return 1
    verified=$((verified + 1)) again="$again, chunk $number again from $origin"
  done
  # Counted once more, because this is what everything stands on
  [ "$verified" -eq "$COUNT" ] || because "ImageRefused: $verified of $COUNT chunks could be verified" || return 1
  report ImageVerified "$COUNT chunks$again"
  deliver &
  say "root image verified: $COUNT chunks$again"
}

good_chunks() { # numbers of chunks whose digest fits; a worker that dies leaves its chunks out, never in
  xargs -P "$(nproc)" -n 16 "$BUSYBOX" sh "$LIB/check.sh" "$FILE" "$CHUNK" <"$RUN/manifest.json.chunks"
}

missing_chunks() { # numbers that are not among the good (not by grep: busybox's finds nothing missing if none is good)
  awk -v list="$RUN/good" 'BEGIN {while ((getline number <list) > 0) good[number]} !($1 in good) {print $1}' \
    "$RUN/manifest.json.chunks"
}

repair() { # NUMBER: sets origin to the one that had it
  offset=$(($1 * CHUNK)) damaged='' silent=''
  length=$((SIZE - offset < CHUNK ? SIZE - offset : CHUNK))
  digest=$(sed -n "s/^$1 //p" "$RUN/manifest.json.chunks")
  sender=$(awk -v at="$offset" '$1 <= at {from = $2} END {print from}' "$RUN/origins")
  say "chunk $1 from $sender is damaged, fetching it again, alone"
  for origin in $(others "$sender") $sender; do
    if ! fetch_range "$origin/v1/blobs/$ROOT" "$offset" "$length"; then
      silent="$silent $origin: $error;"
      continue
    fi
    sum=$(sha256sum <"$RUN/image/chunk")
    if [ "${sum%% *}" = "$digest" ]; then
      dd if="$RUN/image/chunk" of="$FILE" bs="$CHUNK" seek="$1" conv=notrunc 2>/dev/null && return 0
    fi
    damaged="$damaged $origin"
  done
  if [ -n "$damaged" ]; then
    because "ImageRefused: chunk $1 of the root image is damaged at every origin:$damaged${silent:+; no answer:$silent}"
  else # nobody gives parts: what lies before the chunk is good, the rest comes as a stream again
    truncate -s "$offset" "$FILE"
    because "chunk $1 of the root image was damaged and no origin sends it alone:$silent"
  fi
}

others() { # ORIGIN: all but this one
  for other in $ORIGINS; do [ "$other" = "$1" ] || echo "$other"; done
}

split_url() { # URL: sets host (IPv6 without brackets), port, authority (as the Host header has it) and path
  authority=${1#*://} port=80
  path=/${authority#*/}
  authority=${authority%%/*}
  host=$authority
  case $host in *:*[0-9]) port=${host##*:} host=${host%:*} ;; esac
  host=${host#\[} host=${host%\]}
}

fetch_range() { # URL OFFSET LENGTH: exactly these bytes, into $RUN/image/chunk; 1 with `error`
  rm -f "$RUN/image/chunk"
  split_url "$1"
  error=$(timeout 60 "$BUSYBOX" nc "$host" "$port" -e "$BUSYBOX" sh "$LIB/range.sh" \
    "$authority" "$path" "$2" "$3" "$RUN/image/chunk" 2>&1)
  [ "$(size_of "$RUN/image/chunk")" = "$3" ] && return 0
  error=${error:-no answer in time}
  return 1
}
