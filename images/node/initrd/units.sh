# shellcheck shell=sh
# What the root's systemd-networkd and udev are told, so that they go on with what is there: systemd.network(5), .link.
# A file of the image that sorts before 10-netboot-…, or has the same name, takes its place.

leave_units() { # LINK, which has the address
  units=${NETWORKD:-/run/systemd/network}
  mkdir -p "$units"
  ports=$(for port in ${PORTS:-$1}; do address_of "$port"; done | tr '\n' ' ')
  # Kernels before 6.2 cannot rename a card that is up: udev would leave it half-renamed, and networkd would wait for ever.
  # So it keeps the kernel's name on every kernel; the predictable names become its other names.
  unit "$units/10-netboot.link" Match "PermanentMACAddress=${ports% }" \
    Link 'AlternativeNamesPolicy=database onboard slot path mac'
  if [ "$1" = "${PORTS:-$1}" ]; then
    leave_lease "PermanentMACAddress=${ports% }"
  else
    leave_lower "$1"
    leave_lease "Name=$1"
  fi
  [ -z "$CONFIGURED" ] || mask_generator
}

leave_lower() { # LINK: below it a bond, cards, or both, which stay as they are: systemd-networkd would take a bond's cards down
  unit "$units/10-netboot-cards.network" Match "PermanentMACAddress=${ports% }" Link Unmanaged=yes
  # else udev could give them addresses of its own
  unit "$units/10-netboot-links.link" Match "OriginalName=$1${BOND:+ $BOND}" Link MACAddressPolicy=none
}

leave_lease() { # MATCH: go on with the address, which stays until the server, or a router, has said it again
  # shellcheck disable=SC2046 # words
  set -- "$1" Network 'Description=The link that fetched the image' $(for server in $NAMESERVERS; do echo "DNS=$server"; done)
  if [ "$METHOD" = auto6 ]; then
    set -- "$@" IPv6AcceptRA=yes KeepConfiguration=yes IPv6AcceptRA UseDomains=yes \
      ${NAMESERVERS:+UseDNS=no DHCPv6 UseDNS=no}
  else # the same client identifier as udhcpc's, so that the server renews this lease
    set -- "$@" DHCP=ipv4 KeepConfiguration=static DHCPv4 ClientIdentifier=mac UseHostname=no UseMTU=yes UseDomains=yes \
      ${NAMESERVERS:+UseDNS=no}
  fi
  unit "$units/10-netboot.network" Match "$@"
}

unit() { # FILE SECTION|KEY=VALUE...
  file=$1
  shift
  for line in "$@"; do
    case $line in *=*) echo "$line" ;; *) echo "[$line]" ;; esac
  done >"$file"
}

mask_generator() { # systemd-network-generator reads the same arguments in the root, and passes over the options of bond=
  system=${units%/*}/system
  mkdir -p "$system"
  ln -sf /dev/null "$system/systemd-network-generator.service"
}
