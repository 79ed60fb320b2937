# shellcheck shell=sh disable=SC2034 # variables in capitals are shared by the parts
# Small words that every part uses.

say() { # a line for whoever looks at a console; the kernel's log keeps it for the root's journal (<7>: not shown twice)
  echo "netboot: $*"
  for console in ${CONSOLES:-}; do echo "netboot: $*" >"/dev/$console"; done
  [ -z "${KMSG:-}" ] || echo "<7>netboot: $*" >"$KMSG"
}

because() { # leave the reason of a failure, and fail
  REASON=$*
  return 1
}

pause() { # SECONDS: between half of them and all, so that a thousand machines do not come back at the same instant
  sleep "$(drawn "$1")"
}

drawn() { # SECONDS: between half of them and all
  random=$(od -An -N2 -tu2 /dev/urandom)
  milliseconds=$(($1 * 500 + $1 * 500 * random / 65536))
  printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000))
}

size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }

matches() { # TEXT REGULAR-EXPRESSION (extended): the whole of it. busybox's `[[`: no process; a quoted pattern is one to it too
  whole="^($2)\$"
  # shellcheck disable=SC2076,SC3010
  [[ "$1" =~ "$whole" ]]
}

is_url() { # the same as images.artifact.bundle.HttpUrl
  matches "$1" 'https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?'
}

without_tls() { # URL...: those that can be used here, without a slash at the end. Debian's busybox leaves TLS to openssl
  for url in "$@"; do
    case $url in
      http:*) echo "${url%/}" ;;
      *) say "leaving $url out: the initrd speaks plain HTTP only, and believes signatures only" >&2 ;;
    esac
  done
}
