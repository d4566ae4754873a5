"""Hosts that are this machine, its network, or no place at all, in the spellings that resolvers take."""

PRIVATE = (
    # loopback in every spelling that resolvers take
    "127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 2130706433 017700000001 0177.0.0.1 0177.1 127.0.0.01 127.000.000.001 "
    "0x7F.0x0.0x0.0x1 127.0.0.1. 0 0.0.0.0 0x0 00 localhost LOCALHOST localhost. a.localhost localhost.localdomain "
    # this network, by number and by name
    "10.0.0.1 10.1 0xa000001 167772161 172.16.5.4 192.168.0.1 192.168.257 100.64.0.1 169.254.1.1 198.18.0.1 "
    "printer router.local x.internal nas.lan intranet kubernetes.default.svc x.svc.cluster.local "
    "1.0.0.127.in-addr.arpa "
    # what serves credentials
    "169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 metadata metadata.google.internal "
    "METADATA.google.internal. metadata.goog 168.63.129.16 100.100.100.200 [fd00:ec2::254] host.docker.internal "
    # not on the public internet
    "224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 192.0.2.1 203.0.113.7 "
    # version 6, and version 4 inside it
    "[::1] [0:0:0:0:0:0:0:1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:10.0.0.1] [::127.0.0.1] [fe80::1] "
    "[fe80::1%25eth0] [fec0::1] [fc00::1] [fd12:3456::1] [ff02::1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] "
    "[64:ff9b:1::a00:1] [2002:7f00:1::] [2002:a00:1::1] [2001:0:7f00:1::] [2001:db8::1] [100::1] "
    # other digits and dots that are folded into these
    "\uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u2460\u2461\u2466.0.0.1 \uff4cocalhost loc\u00adalhost"
).split()
