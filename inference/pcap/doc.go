// Package pcap reads captures as frames and writes frames as pcapng with a
// comment on each packet.
//
// Reading takes pcap and pcapng (gopacket/pcapgo), packed with gzip or not, of
// Ethernet, raw IP, BSD loopback and Linux cooked captures (tcpdump -i any), and
// several of them in one pcapng file. Writing is done here: the
// pcapng writer of gopacket v1.1.19 knows no packet comments. Blocks are those
// of the pcapng specification (draft-ietf-opsawg-pcapng §4): section header,
// one interface description per host, enhanced packets with nanosecond times.
package pcap
