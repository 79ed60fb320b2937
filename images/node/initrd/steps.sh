# shellcheck shell=sh disable=SC2154 # the parts share variables
# Each step is tried until it succeeds; a step that fails leaves its reason, in words, in REASON.

take() { # STEP...
  for step in "$@"; do
    until "$step"; do failed; done
  done
}

failures=0 FAILURES_ALLOWED=10
failed() { # say it, report it, wait, and after many times start over from the firmware
  failures=$((failures + 1))
  say "FAILED ($failures of $FAILURES_ALLOWED): $REASON"
  report Failed "$REASON"
  { deliver; show_console; } &
  if [ -e /etc/netboot/debug ] && [ "$DEBUG" = shell ]; then
    say "this initrd was built for debugging; exit the shell to go on"
    setsid cttyhack sh
  fi
  if [ "$failures" -ge "$FAILURES_ALLOWED" ]; then
    say "rebooting, to ask the service anew what to boot"
    drain 10
    pause 10
    reboot -f
  fi
  seconds=$((5 << failures))
  pause $((seconds < 60 ? seconds : 60))
}
