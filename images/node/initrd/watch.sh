# shellcheck shell=sh disable=SC2010,SC2154 # names are numbers; the parts share variables
# Beside the fetch: a line every few seconds; connections that stand still or are far slower than others are ended.

watch_fetch() {
  seconds=0 before=0
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
    slot=${file##*.} now=$(received "${file##*.}") was=0
    pid=$(cat "$FETCH/pid.$slot" 2>/dev/null)
    pid_before=''
    [ ! -e "$FETCH/window.$slot" ] || read -r was _ pid_before _ <"$FETCH/window.$slot"
    brought=$((now - was))
    total=$((total + brought))
    [ "$brought" -le "$fastest" ] || fastest=$brought
    echo "$now $brought ${pid:-none} $([ -n "$pid" ] && [ "$pid" = "$pid_before" ] && echo watched)" >"$FETCH/window.$slot"
  done
  for file in "$FETCH"/window.*; do
    read -r _ brought pid watched <"$file"
    [ "$watched" = watched ] || continue # it has not been watched for a whole window
    if [ "$brought" -lt "$STALL_BYTES" ]; then
      stop "${file##*.}" "$pid" "$(lonely || echo "leave: ")less than $STALL_BYTES bytes came in $STALL_SECONDS seconds"
    elif spare && [ $((brought * SLOWEST)) -lt "$fastest" ]; then
      stop "${file##*.}" "$pid" "leave: $((brought / STALL_SECONDS >> 10)) KiB/s, less than a tenth of the fastest"
    fi
  done
  ! spare || [ "$total" -ge $(($(link_speed) * 125000 * STALL_SECONDS / LEAST_OF_LINK)) ] || join_in
}

stop() { # SLOT PID OUTCOME
  echo "$3" >"$FETCH/outcome.$1"
  kill -KILL "-$2"
}

lonely() { # whether there is no other origin to go on with
  ! spare && [ "$(alive | awk '!seen[$3]++' | wc -l)" -le 1 ]
}

spare() { # whether an origin has not been asked yet
  [ "$(ls "$FETCH/taken" | grep -vc shared)" -lt "$(echo "$ORIGINS" | wc -w)" ]
}

link_speed() { # Mbit/s; 0 where the card does not say, as virtual ones
  speed=$(cat "/sys/class/net/${nic:-none}/speed" 2>/dev/null)
  case $speed in '' | -*) echo 0 ;; *) echo "$speed" ;; esac
}

join_in() { # one origin more beside those that are slow for this link
  read -r wanted <"$FETCH/wanted"
  [ "$wanted" -lt "$MOST_SLOTS" ] || return 0
  say "$((total / STALL_SECONDS >> 10)) KiB/s is little for this link, asking one origin more"
  echo $((wanted + 1)) >"$FETCH/wanted"
}
