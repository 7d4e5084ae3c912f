# An SMSC by Net::SMPP (Debian: libnet-smpp-perl), for test/providers/smpp-strangers.slow.test.ts.
#
#   perl net-smpp.pl PORT RECEIPT_IDS LOG
#
# LOG gets a line of JSON for everything that the SMSC hears. The last digit of a number decides about its message: see
# `%habits`. Segments are joined here, and texts are decoded by Perl's own tables. RECEIPT_IDS `decimal`: answers have
# hexadecimal ids, and receipts have decimal ids of ten digits.
use strict;
use warnings;
use Encode ();
use IO::Handle;
use IO::Select;
use JSON::PP ();
use Net::SMPP;

my ($port, $receipt_ids, $log_file) = @ARGV;
my %habits = (
    1 => 'receipt in parameters',
    2 => 'receipt as payload',
    3 => 'receipt of a failure',
    4 => 'throttled twice',
    5 => 'hangs once',
    6 => 'unbinds afterwards',
    7 => 'receipt before the answer',
    8 => 'receipt twice',
    9 => 'enquires before the answer',
);
my ($throttled, $unbound, $accepted, $refused) = (0x58, 0, 0, 0x0e);

open my $log, '>>', $log_file or die "$log_file: $!";
$log->autoflush(1);
my $json = JSON::PP->new->canonical->ascii;
sub heard { print $log $json->encode({@_}), "\n" }

my $door = Net::SMPP->new_listen('127.0.0.1', port => $port) or die "port $port: $!";
my $select = IO::Select->new($door);
# By the file number of a connection.
my (%role, %seen, %parts);
# Perl closes a connection that nothing refers to.
my @silent;
my $ids = 0xABC00;
# The connection that gets receipts.
my $receiver;

while (my @ready = $select->can_read) {
    for my $socket (@ready) {
        if ($socket == $door) {
            $select->add($door->accept);
            next;
        }
        my $pdu = $socket->read_pdu;
        if ($pdu) { hear($socket, $pdu) }
        else { leave($socket) }
    }
}

sub leave {
    my ($socket) = @_;
    heard(what => 'end', role => delete $role{$socket->fileno});
    $select->remove($socket);
    close $socket;
}

sub hear {
    my ($socket, $pdu) = @_;
    my $what = $pdu->explain_cmd;
    my $seq = $pdu->seq;
    if ($what =~ /^bind_(\w+)$/) {
        my $role = $1;
        my $answer = "${what}_resp";
        my $is_known = $pdu->{password} eq 'pass word';
        heard(what => 'bind', role => $role, id => $pdu->{system_id}, type => $pdu->{system_type});
        $socket->$answer(seq => $seq, system_id => 'net-smpp', status => $is_known ? 0 : $refused);
        return unless $is_known;
        $role{$socket->fileno} = $role;
        $receiver = $socket if $role ne 'transmitter';
    }
    elsif ($what eq 'enquire_link') {
        heard(what => $what, role => $role{$socket->fileno});
        $socket->enquire_link_resp(seq => $seq);
    }
    elsif ($what eq 'unbind') {
        heard(what => $what, role => $role{$socket->fileno});
        $socket->unbind_resp(seq => $seq);
    }
    elsif ($what eq 'submit_sm') { take($socket, $pdu) }
    else { heard(what => $what, status => $pdu->status) }
}

sub take {
    my ($socket, $pdu) = @_;
    my ($to, $seq) = ($pdu->{destination_addr}, $pdu->seq);
    my $habit = $habits{substr $to, -1} // '';
    my $times = ++$seen{$to};
    if ($habit eq 'throttled twice' && $times <= 2) {
        heard(what => 'throttled', to => $to);
        return $socket->submit_sm_resp(seq => $seq, message_id => '', status => $throttled);
    }
    if ($habit eq 'hangs once' && $times == 1) {
        heard(what => 'hangs', to => $to);
        # The connection stays open, and nothing more that it sends is read.
        push @silent, $socket;
        return $select->remove($socket);
    }
    my $id = ++$ids;
    join_parts($pdu);
    my $is_wanted = $pdu->{registered_delivery} == 1;
    $socket->enquire_link(async => 1) if $habit eq 'enquires before the answer';
    receipt($to, $id, $habit) if $is_wanted && $habit eq 'receipt before the answer';
    my $answered_id = $receipt_ids eq 'decimal' ? sprintf('%X', $id) : "smsc-$id";
    $socket->submit_sm_resp(seq => $seq, message_id => $answered_id);
    return unless $is_wanted;
    receipt($to, $id, $habit) if $habit ne 'receipt before the answer';
    receipt($to, $id, $habit) if $habit eq 'receipt twice';
    $socket->unbind(async => 1) if $habit eq 'unbinds afterwards' && !$unbound++;
}

# Logs a text when all its segments are there.
sub join_parts {
    my ($pdu) = @_;
    my $octets = $pdu->{message_payload} // $pdu->{short_message};
    my ($to, $count, $number, $reference) = ($pdu->{destination_addr}, 1, 1, '');
    if ($pdu->{esm_class} & 0x40) {
        my ($length, $element, $size);
        ($length, $element, $size, $reference, $count, $number) = unpack 'C6', $octets;
        die 'another header than for joining' if $length != 5 || $element != 0 || $size != 3;
        substr($octets, 0, 6) = '';
    }
    my $table = {0 => 'gsm0338', 8 => 'UTF-16BE'}->{$pdu->{data_coding}} or die 'another data coding';
    my $texts = $parts{"$to $reference"} //= {};
    $texts->{$number} = Encode::decode($table, $octets, Encode::FB_CROAK);
    return if keys %$texts < $count;
    delete $parts{"$to $reference"};
    heard(
        what => 'message',
        to => $to,
        from => $pdu->{source_addr},
        coding => $pdu->{data_coding},
        parts => $count,
        text => join('', map { $texts->{$_} } 1 .. $count),
        valid => $pdu->{validity_period},
    );
}

sub receipt {
    my ($to, $number, $habit) = @_;
    return unless $receiver;
    my $id = $receipt_ids eq 'decimal' ? sprintf('%010d', $number) : "smsc-$number";
    my $is_failure = $habit eq 'receipt of a failure';
    my ($stat, $error) = $is_failure ? ('UNDELIV', '0b1') : ('DELIVRD', '000');
    my $text = "id:$id sub:001 dlvrd:001 submit date:2611010803 done date:2611010804 stat:$stat err:$error text:Your";
    my %more
        = $habit eq 'receipt in parameters' ? (receipted_message_id => "$id\0", message_state => pack('C', 2))
        : $habit eq 'receipt as payload' ? (message_payload => $text)
        : (short_message => $text);
    $receiver->deliver_sm(async => 1, esm_class => 0x04, source_addr => $to, destination_addr => 'Acme', %more);
}
