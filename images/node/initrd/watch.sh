# shellcheck shell=sh disable=SC2154 # the parts share variables
# Beside the fetch: a line every few seconds; connections that stand still or are far slower than others are ended.

watch_fetch() {
  seconds=0 before=0 wanted=$SLOTS
  while sleep 1; do
    seconds=$((seconds + 1))
    [ $((seconds % 3)) != 0 ] || say_progress
    [ $((seconds % STALL_SECONDS)) != 0 ] || judge_slots
  done
}

say_progress() {
  now=$(($(good_count) * CHUNK))
  say "root image: $(((now < SIZE ? now : SIZE) >> 20)) of $((SIZE >> 20)) MiB, $(((now - before) / 3 >> 10)) KiB/s from" \
    "$(alive | awk '!seen[$3]++ {printf "%s%s", sep, $3; sep = " "}')"
  before=$now
}

judge_slots() { # by what each brought since it was looked at last
  fastest=0 total=0
  for file in "$FETCH"/alive.*; do
    [ -e "$file" ] || continue
    read -r _ slot origin <"$file"
    now=$(received "$slot") was=0 before_origin=''
    [ ! -e "$FETCH/window.$slot" ] || read -r was _ before_origin _ <"$FETCH/window.$slot"
    brought=$((now - was)) watched=''
    total=$((total + brought))
    [ "$brought" -le "$fastest" ] || fastest=$brought
    [ "$origin" != "$before_origin" ] || [ -e "$FETCH/rested.$slot" ] || watched=watched
    rm -f "$FETCH/rested.$slot"
    echo "$now $brought $origin $watched" >"$FETCH/window.$slot"
  done
  for file in "$FETCH"/window.*; do
    [ -e "$file" ] || continue
    slot=${file##*.} pid=''
    read -r _ brought _ watched <"$file"
    [ ! -e "$FETCH/pid.$slot" ] || read -r pid <"$FETCH/pid.$slot"
    if [ -z "$pid" ] || [ -z "$watched" ]; then continue; fi # not connected, or not for the whole time
    if [ "$brought" -lt "$STALL_BYTES" ]; then
      stop "$(lonely || echo "later: ")less than $STALL_BYTES bytes came in $STALL_SECONDS seconds"
    elif spare && [ $((brought * SLOWEST)) -lt "$fastest" ]; then
      stop "later: $((brought / STALL_SECONDS >> 10)) KiB/s, less than a tenth of the fastest"
    fi
  done
  ! spare || [ "$total" -ge $(($(link_speed) * 125000 * STALL_SECONDS / LEAST_OF_LINK)) ] || join_in
}

stop() { # OUTCOME, of the connection `pid` of `slot`
  echo "$1" >"$FETCH/outcome.$slot"
  kill -KILL "-$pid"
}

lonely() { # whether there is no other origin to go on with
  ! spare && [ "$(alive | awk '!seen[$3]++' | wc -l)" -le 1 ]
}

spare() { # whether an origin has not been asked yet
  [ "$(find "$FETCH/taken" -mindepth 1 | wc -l)" -lt "$(wc -l <"$FETCH/order")" ]
}

link_speed() { # Mbit/s, of a bond or VLAN as the kernel reckons it; LEAST_LINK where the link does not say, as virtual ones
  speed=$(cat "$NET/${UPLINK:-none}/speed" 2>/dev/null)
  case $speed in '' | 0 | -*) echo "$LEAST_LINK" ;; *) echo "$speed" ;; esac
}

join_in() { # one origin more beside those that are slow for this link
  [ "$wanted" -lt "$MOST_SLOTS" ] || return 0
  wanted=$((wanted + 1))
  say "$((total / STALL_SECONDS >> 10)) KiB/s is little for this link, asking one origin more"
  echo more >&3
}
