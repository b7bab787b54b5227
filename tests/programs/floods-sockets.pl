#!/usr/bin/perl
# Twenty processes that send messages to the sockets of all supervisors without end.
use Socket;
for my $size (1 .. 20) {
    next if fork;
    socket(S, AF_UNIX, SOCK_DGRAM, 0);
    while (1) {
        open(my $f, q(<), q(/proc/net/unix));
        my @names = map { /@(containerpilot\S+)/ ? $1 : () } <$f>;
        next unless @names;
        my $to = pack_sockaddr_un(qq(\0$names[rand @names]));
        for (1 .. 10000) { last unless defined send(S, q(x) x ($size * 50), 0, $to) }
    }
}
sleep 1000;
