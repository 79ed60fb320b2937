# shellcheck shell=sh disable=SC2034 # what is sourced below uses them
# PHASE: report it to the service, and whatever the initrd could not. Uses only what the initrd left in /run/netboot.
RUN=/run/netboot BUSYBOX=/run/netboot/busybox
# shellcheck source=/dev/null
for part in boot.env words.sh report.sh crash.sh; do . "$RUN/$part"; done

# Units of this kind run one after the other: who still seems to deliver was ended in the middle of it
for folder in "$RUN/delivering" "$RUN/delivering-crashes"; do
  [ ! -d "$folder" ] || rmdir "$folder"
done
failed='' # at Switched nearly nothing has been started, and all units are waiting for a processor
[ "$1" = Switched ] || failed=$(systemctl list-units --failed --plain --no-legend 2>/dev/null | cut -d' ' -f1 | tr '\n' ' ')
told='' # what units want said of this boot, such as its ssh host key
[ ! -s "$RUN/tell" ] || told=$(cat "$RUN/tell")
report "$1" "$told${failed:+${told:+; }failed units: $failed}"
for _ in 1 2 3 4 5 6 7 8 9 10; do
  deliver
  deliver_crashes
  [ -n "$(ls "$RUN/events")" ] || exit 0
  pause 10
done
say "the service could not be told: its events are left in $RUN/events"
