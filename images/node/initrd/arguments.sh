# shellcheck shell=sh disable=SC2034 # variables in capitals are shared by the parts
# What the kernel's command line says of the network: a strict part of dracut.cmdline(7). images/values/network_arguments.py
# holds the inventory to the same rules, in the same words.

CARD='(BOOTIF|enx[0-9a-f]{12}|en(P[0-9]{1,5})?p[0-9]{1,3}s[0-9]{1,3}(f[0-9]{1,3})?(n[0-9a-z]{1,8}|d[0-9]{1,3})?)'
A_CARD='a CARD is BOOTIF, enx and its MAC, or its PCI path, like enp59s0f0'

read_network_arguments() { # WORD...: sets METHOD, LINK, BOND, BOND_OPTIONS, VLAN, CARDS, NAMESERVERS, DRIVERS, CONFIGURED
  IP='' BOND='' VLAN='' NAMESERVERS='' DRIVERS='' CONFIGURED=''
  for word in "$@"; do
    name=${word%%=*} value=''
    case $word in *=*) value=${word#*=} ;; esac
    case $name in
      ip | bond | vlan | nameserver | netboot.nic_driver) read_network_argument || return 1 ;;
      ifname | bootdev | bridge | team | netroot | rd.bootif | rd.neednet | rd.peerdns | rd.route | rd.znet | rd.multipath | rd.iscsi.* | rd.net.*)
        because "$name is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md" || return 1
        ;;
    esac
  done
  # shellcheck disable=SC2086 # words
  set -- $NAMESERVERS
  [ $# -le 3 ] || because "nameserver= is there more than three times, and the C library reads three" || return 1
  put_together
}

read_network_argument() { # of name and value
  bond='bond[0-9]{1,3}' id='([1-9][0-9]{0,2}|[1-3][0-9]{3}|40[0-8][0-9]|409[0-4])' miimon='miimon=[1-9][0-9]{0,4}'
  lacp="(,($miimon|lacp_rate=(slow|fast)|xmit_hash_policy=(layer2|layer2\+3|layer3\+4)))*"
  case $name in
    ip)
      form="(($CARD|$bond|($CARD|$bond)\.$id|vlan$id):)?(dhcp|auto6)" said=$IP
      remedy="say dhcp, auto6, LINK:dhcp or LINK:auto6, where LINK is the VLAN, the bond or a CARD; $A_CARD"
      ;;
    bond)
      form="$bond:$CARD(,$CARD){0,7}:(mode=active-backup(,$miimon)*|mode=802\.3ad$lacp)" said=$BOND
      remedy="say bond0:CARD,CARD:mode=802.3ad or …:mode=active-backup; $A_CARD"
      ;;
    vlan)
      form="(vlan|($CARD|$bond)\.)$id:($CARD|$bond)" said=$VLAN
      remedy="say vlan5:LINK or LINK.5:LINK, where LINK is the bond or a CARD; $A_CARD"
      ;;
    nameserver)
      byte='(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])' hex='[0-9A-Fa-f]{1,4}'
      form="$byte(\.$byte){3}|($hex:){7}$hex|($hex:){1,7}:|:(:$hex){0,6}:$hex|::"
      for groups in 1 2 3 4 5 6; do form="$form|($hex:){1,$groups}(:$hex){1,$((7 - groups))}"; done
      said=''
      remedy='say one IPv4 or IPv6 address'
      ;;
    netboot.nic_driver)
      form='[a-z0-9_-]{1,32}(,[a-z0-9_-]{1,32}){0,7}' said=$DRIVERS
      remedy="say drivers' names with commas between them, like mlx5_core"
      ;;
  esac
  matches "$value" "$form" || because "$name=$value is not understood; $remedy (docs/boot-stage.md)" || return 1
  [ -z "$said" ] ||
    because "$name= is there twice; a boot needs one, and others are systemd-networkd's, in the image" || return 1
  CONFIGURED=yes
  case $name in
    ip) IP=$value ;;
    bond) BOND=$value ;;
    vlan) VLAN=$value ;;
    nameserver) NAMESERVERS="$NAMESERVERS $value" ;;
    netboot.nic_driver) DRIVERS=$(echo "$value" | tr ',' ' ') ;;
  esac
}

put_together() { # whether the address is for what bond and VLAN make of the cards
  METHOD=${IP##*:} LINK='' CARDS='' BOND_OPTIONS=''
  if [ -n "$BOND" ]; then
    BOND_OPTIONS=$(echo "${BOND##*:}" | tr ',' ' ')
    case $BOND_OPTIONS in *miimon=*) ;; *) BOND_OPTIONS="$BOND_OPTIONS miimon=100" ;; esac
    CARDS=${BOND#*:}
    CARDS=$(echo "${CARDS%:*}" | tr ',' ' ')
    twice=$(echo "$CARDS" | tr ' ' '\n' | sort | uniq -d | head -n 1)
    [ -z "$twice" ] || because "bond= names $twice twice; say each card once" || return 1
    BOND=${BOND%%:*} LINK=${BOND%%:*}
  fi
  if [ -n "$VLAN" ]; then put_vlan || return 1; fi
  given=${IP%"$METHOD"}
  given=${given%:}
  if [ -n "$LINK" ]; then
    [ "$given" = "$LINK" ] ||
      because "ip= must be $LINK:dhcp or $LINK:auto6, for what bond= and vlan= make" || return 1
  else
    case $given in
      bond* | vlan* | *.*) because "ip=$IP is for $given, which neither bond= nor vlan= makes" || return 1 ;;
    esac
    LINK=$given CARDS=$given
  fi
  METHOD=${METHOD:-dhcp}
}

put_vlan() {
  vlan=${VLAN%%:*} device=${VLAN#*:}
  id=${vlan##*[!0-9]}
  if [ -n "$LINK" ]; then
    [ "$device" = "$LINK" ] ||
      because "vlan=$VLAN lies on $device, and bond= makes $LINK; say $vlan:$LINK" || return 1
  else
    case $device in bond*) because "vlan=$VLAN lies on $device, which no bond= makes" || return 1 ;; esac
    CARDS=$device
  fi
  case $vlan in
    vlan*) ;;
    "$device".*) ;;
    *) because "vlan=$VLAN is named after another link than $device; say vlan$id:$device" || return 1 ;;
  esac
  if [ "${#vlan}" -gt 15 ] || [ "${vlan%%.*}" = BOOTIF ]; then
    because "vlan=$VLAN: the kernel takes no such name; say vlan$id:$device" || return 1
  fi
  VLAN=$vlan VLAN_ID=$id LINK=$vlan
}
