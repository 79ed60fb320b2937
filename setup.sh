#!/usr/bin/env bash
# Everything that `make demo` and `make test` need, on a fresh Debian 12 or Ubuntu 24.04. Costs a second when nothing changed.
set -euo pipefail
cd "$(dirname "$0")"

packages=(
  python3-venv                                              # the environment below
  mmdebstrap debian-archive-keyring gpgv arch-test          # bootstrap of images
  qemu-user-static                                          # … of the other architecture
  disorderfs faketime                                       # other surroundings for `image build --check`
  squashfs-tools erofs-utils zstd kmod xz-utils             # their steps
  signify-openbsd cpio osslsigncode sbsigntool              # UKIs' signatures; checks by hand and of tests
  busybox-static                                            # the initrd's shell, for tests on the host
  swtpm swtpm-tools tpm2-tools                              # real TPMs, for machines and for the tests of tokens
  gpg                                                       # reads the keys of archives
  gpg-agent                                                 # with it the lab signs its own apt repository
  qemu-system-x86 ovmf ipxe-qemu ipxe                       # machines and their firmware
  qemu-system-arm qemu-efi-aarch64                          # … of arm64
  etcd-server                                               # below the control plane of `make cluster`
  iproute2 dnsmasq-base nginx-light                         # a provisioning network, a second origin
  kea-dhcp4-server isc-dhcp-server                          # … and the DHCP servers of others
  openvswitch-switch                                        # a switch with LACP groups; processes of the tests' own
  fio iperf3                                                # what the tests of disks and networks under load run
  docker-registry                                           # a real registry, to push to and pull from
  systemd-journal-remote openssh-client                     # what takes machines' journals; ways into them
  prometheus                                                # promtool, which reads the alert rules that we ship
  chromium fonts-dejavu-core                                # the page, in a real browser
  pipx                                                      # installs the wheel, in a test
  buildah podman crun                                       # build the container image, and run it in a test: 25 MiB
  groff-base mandoc                                         # both read the man pages, in tests
  wrk curl shellcheck
)

# Ubuntu has Chromium as a snap alone, which a package of apt's would fetch from elsewhere: whoever wants the page's tests
# there installs it (`snap install chromium`), or sees them fail.
if grep -qx 'ID=ubuntu' /etc/os-release; then
  for at in "${!packages[@]}"; do [ "${packages[at]}" != chromium ] || unset "packages[at]"; done
fi

say() { printf '\033[1m==>\033[0m %s\n' "$1"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing system packages: ${missing[*]}"
  # A package that starts a server must not take a port of this machine: policy-rc.d is dpkg's own way to say so.
  guard=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
    as_root chmod 755 /usr/sbin/policy-rc.d
    guard=1
  fi
  trap '[ -z "$guard" ] || as_root rm -f /usr/sbin/policy-rc.d' EXIT
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# Programs of the other architecture run once the kernel knows qemu-user. systemd sees to that where it is init, set-up elsewhere;
# it lasts until the machine restarts. Images of this machine's own architecture need none of it.
case $(dpkg --print-architecture) in
  amd64) other=arm64 handler=qemu-aarch64 ;;
  arm64) other=amd64 handler=qemu-x86_64 ;;
  *) other='' handler='' ;;
esac
if [ -n "$other" ] && ! arch-test "$other" >/dev/null 2>&1; then
  say "registering qemu-user for programs of $other (binfmt_misc)"
  binfmt=/proc/sys/fs/binfmt_misc
  grep -qw binfmt_misc /proc/filesystems || as_root modprobe binfmt_misc || true
  [ -e $binfmt/register ] || as_root mount -t binfmt_misc binfmt_misc $binfmt || true
  [ -e $binfmt/$handler ] || grep '^:' /usr/lib/binfmt.d/$handler.conf | as_root tee $binfmt/register >/dev/null || true
  arch-test "$other" || say "images for $other cannot be built here; the build of one says what is missing"
fi

stamp=.venv/.installed
want=$(cat requirements.lock pyproject.toml setup.sh tests/oidc/package-lock.json | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
  # The distribution's Python first: it is built with profile and link-time optimisation, which a home-made one often is not
  # (half as fast again, measured), and every account can execute it.
  python=
  for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate && break; fi
  done
  [ -n "$python" ] || { echo "netboot needs Python 3.11 or newer; python3 is $(python3 --version 2>&1)" >&2; exit 1; }
  say "installing the locked Python dependencies into .venv"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
  say "installing the issuer of the tests' logins (npm's oidc-provider)"
  mkdir -p .venv/share/oidc
  cp tests/oidc/package.json tests/oidc/package-lock.json .venv/share/oidc/
  if PATH="$PWD/.venv/bin:$PATH" npm ci --prefix .venv/share/oidc --ignore-scripts --no-audit --no-fund --loglevel=error; then
    printf '%s' "$want" >"$stamp"
  else
    say "it cannot be fetched now: tests of logins fail until ./setup.sh can; all else is there"
  fi
fi

# Bytecode of what runs as many processes: where PYTHONDONTWRITEBYTECODE is set, each of them would compile its modules again.
.venv/bin/python -m compileall -q netboot images ipxe tokens lab tests >/dev/null ||
  say "bytecode could not be written everywhere (files of another account?): all works, and starts more slowly"
