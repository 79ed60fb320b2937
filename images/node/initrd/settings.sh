# shellcheck shell=sh disable=SC2034 # variables in capitals are shared by the parts
# What the kernel's command line says. Anybody on the wire may have written it: every value passes an allow-list.

read_command_line() { # FILE (default: the real one)
  BOOT='' IMAGE='' REPORT='' ORIGINS='' GROUPED='' MAC='' NAME='' DEBUG=''
  read -r line <"${1:-/proc/cmdline}"
  set -f # no word of it is a pattern for files
  for word in $line; do
    case $word in
      netboot.boot=*) BOOT=${word#*=} ;;
      netboot.image=*) IMAGE=${word#*=} ;;
      netboot.report=*) REPORT=${word#*=} ;;
      netboot.origins=*) # an empty item ends a group of those that are preferred alike
        GROUPED=$(echo "${word#*=}" | sed 's/,,,*/\n/g') ORIGINS=$(echo "${word#*=}" | tr ',' ' ') ;;
      netboot.debug=*) DEBUG=${word#*=} ;;
      systemd.hostname=*) NAME=${word#*=} ;;
      BOOTIF=*) MAC=$(echo "${word#BOOTIF=01-}" | tr 'A-F-' 'a-f:') ;;
    esac
  done
  set +f
  hex='[0-9a-f]'
  check netboot.boot "$BOOT" "$hex{8}(-$hex{4}){3}-$hex{12}" || return 1
  check netboot.image "$IMAGE" "$hex{64}" || return 1
  is_url "$REPORT" || bad netboot.report "$REPORT" || return 1
  [ -n "$ORIGINS" ] || bad netboot.origins '' || return 1
  for origin in $ORIGINS; do is_url "$origin" || bad netboot.origins "$origin" || return 1; done
  # shellcheck disable=SC2086 # words
  ORIGINS=$(without_tls $ORIGINS)
  [ -n "$ORIGINS" ] || because "the kernel's command line has no netboot.origins with plain HTTP" || return 1
  [ -z "$MAC" ] || check BOOTIF "$MAC" "$hex{2}(:$hex{2}){5}" || return 1
  [ -z "$NAME" ] || check systemd.hostname "$NAME" '[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?' || return 1
  REPORT=${REPORT%/}
  set -f
  # shellcheck disable=SC2086 # words
  read_network_arguments $line
  understood=$?
  set +f
  return "$understood"
}

check() { # NAME VALUE REGULAR-EXPRESSION
  matches "$2" "$3" || bad "$1" "$2"
}

bad() { # NAME VALUE: a value that did not pass may not become part of an event either
  case $1 in
    netboot.boot | netboot.report) BOOT='' ;;
    BOOTIF) MAC='' ;;
    systemd.hostname) NAME='' ;;
  esac
  because "the kernel's command line has no usable $1 (it says: '$2')"
}

load_modules() { # in the order that the build worked out; one that does not load is said, and others are tried. Not said is
  # a driver that finds no device of its own: of those of boards' watchdogs at most one does
  while read -r module; do
    options=''
    case $module in
      bonding.ko)
        [ -n "$BOND" ] || continue
        options=max_bonds=0 # else it makes a bond0 of its own
        ;;
      8021q.ko) [ -n "$VLAN" ] || continue ;;
    esac
    # shellcheck disable=SC2086 # no option: no word
    insmod "$LIB/modules/$module" $options >"$RUN/error" 2>&1 || grep -q 'No such device' "$RUN/error" ||
      say "module $module: $(cat "$RUN/error")"
  done <"$LIB/modules.order"
  rm -f "$RUN/error"
}

announce() {
  report InitrdStarted "kernel $(uname -r)"
}
