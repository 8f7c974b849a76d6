package classify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsplit/model"
)

// Dissector frames and types the messages of one connection. Create one per
// connection; it is not safe for concurrent use.
type Dissector interface {
	// Data hands over the next in-order payload bytes of a direction: dir 0 is
	// the side that opened the connection, 1 the other. off is the stream
	// offset of b[0]. b is only valid during the call. emit is called for each
	// message whose type became certain, in stream order within a direction.
	Data(dir int, off uint64, b []byte, emit func(Unit))
	// Gap says that bytes [off, off+n) of the direction were never seen. What
	// was incomplete is emitted as it stands and the dissector looks for the
	// next message behind the gap.
	Gap(dir int, off uint64, n uint64, emit func(Unit))
	// Close ends a direction: what is incomplete is emitted as it stands.
	Close(dir int, emit func(Unit))
}

// Unit is one message of one direction.
type Unit struct {
	Dir    int    // 0 or 1, as in Dissector.Data
	Offset uint64 // stream offset of the first byte; 0 for a datagram
	Bytes  int    // length on the wire
	Type   string
	// Broad is the type without the word in it that may be data; "" if Type
	// holds none. See Vocabulary.
	Broad  string
	Fields []model.Field
}

// Names of the dissectors, as a target file writes them. The comment on each is its line
// in docs/target-reference.md.
const (
	// Redis and Sentinel.
	NameRESP = "resp"
	// Lines over TCP, one message per datagram over UDP. Fields: `text` (the line), its words `token0`, `token1`, and each
	// word `key=value`. A line that counts bytes behind it needs `lines`.
	NameText = "text"
	// JSON values, with or without line ends; JSON-RPC; one value per datagram over UDP. The type is the first of the members `method`,
	// `type`, `op`, `event`, `action`, `cmd`, `command`, `kind`, `msg_type`, `messageType`, `execute` in the object or in an object in it (`json vote`);
	// the first element of an array (`json [EVENT]`); `json reply METHOD` or `json error METHOD` for an answer; else the
	// names of the members (`json {from,term}`). Fields are the values by path (`body.msg_id`, `params.0.term`): 64 per message, 6 steps deep.
	NameJSON = "json"
	// Requests (`method`, `path`, `query.NAME`, `host`) and answers (`code`, `length`, `type`, `request`); no bodies.
	NameHTTP = "http"
	// As `http`, and each chunk of a chunked body is a message: for answers that last as long as their connection (etcd's Raft, watches).
	NameHTTPStream = "http-stream"
	// Any other protocol: direction, length class, first token. All that one side sends until the other side speaks is one message (64 KB at most).
	// Across a cut nobody answers, so it sees little there but retransmissions and new connections.
	NameFallback = "fallback"
	// A binary protocol that `frames` describes.
	NameFrames = "frames"
	// Cassandra, between nodes.
	NameCassandra = "cassandra"
	// Cassandra, clients of today.
	NameCQL = "cql"
	// Cassandra, clients before CQL.
	NameThrift = "thrift"
	// RPC of HDFS and YARN.
	NameHadoopRPC = "hadoop-rpc"
	// Headers of HDFS data transfer.
	NameHDFSData = "hdfs-data"
	// RPC of Hadoop before protobuf: 0.20 and 1.x, HDFS.
	NameHadoopWritable = "hadoop-writable"
	// Headers of HDFS data transfer before protobuf: 0.20 and 1.x.
	NameHDFSWritable = "hdfs-writable"
	// ZooKeeper, clients.
	NameZooKeeper = "zookeeper"
	// ZooKeeper, election.
	NameZooKeeperFLE = "zookeeper-fle"
	// ZooKeeper, leader and followers.
	NameZooKeeperZAB = "zookeeper-zab"
	// AMQP 0-9-1, RabbitMQ's clients.
	NameAMQP = "amqp"
	// The distribution of Erlang: between RabbitMQ's nodes.
	NameErlang = "erlang"
	// Records of TLS, by their length only.
	NameTLS = "tls"
)

// registry holds the constructor of each dissector but that of NameFrames, which
// needs more than its name.
var registry = map[string]func() Dissector{
	NameAMQP:           newAMQP,
	NameErlang:         newErlang,
	NameRESP:           newRESP,
	NameCassandra:      newCassandra,
	NameThrift:         newThrift,
	NameCQL:            newCQL,
	NameText:           func() Dissector { return newText() },
	NameJSON:           NewJSON,
	NameHTTP:           newHTTP,
	NameHTTPStream:     newHTTPStream,
	NameFallback:       func() Dissector { return newFallback() },
	NameTLS:            newTLS,
	NameHadoopRPC:      newHadoopRPC,
	NameHDFSData:       newHDFSData,
	NameHadoopWritable: newHadoopWritable,
	NameHDFSWritable:   newHDFSWritable,
	NameZooKeeper:      newZooKeeper,
	NameZooKeeperFLE:   newZooKeeperFLE,
	NameZooKeeperZAB:   newZooKeeperZAB,
}

// datagrams holds the readers of single datagrams; a dissector that is not
// here reads connections only.
var datagrams = map[string]func([]byte) Unit{
	NameRESP: respDatagram,
	NameText: textDatagram,
	NameJSON: jsonDatagram,
}

// Names lists the dissectors that New knows, sorted.
func Names() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(registry)), NameFrames)))
}

// New returns the dissector a protocol names, for one connection; TLS is known by
// its first bytes whatever is named, and is opaque. A protocol that names none gets the fallback; the error of an unknown name lists the
// known ones, that of a reader of connections for datagrams those that read them.
func New(p model.Protocol) (Dissector, error) {
	name := p.Dissector
	if name == "" {
		name = NameFallback
	}
	if name == NameFrames {
		f, err := newFrames(p)
		if err != nil {
			return nil, err
		}
		return newSniffing(sniffsAlways, func() Dissector { return newFramedPair(&upgrading{framed: f}) }), nil
	}
	if p.Frames != nil {
		return nil, fmt.Errorf("protocol on port %d: frames goes with dissector %s, not with %s", p.Port, NameFrames, name)
	}
	if len(p.Lines) > 0 {
		if name != NameText {
			return nil, fmt.Errorf("protocol on port %d: lines goes with dissector %s, not with %s", p.Port, NameText, name)
		}
		l, err := newTextLines(p)
		if err != nil {
			return nil, err
		}
		return newSniffing(sniffsAlways, func() Dissector { return newFramedPair(&upgrading{framed: l}) }), nil
	}
	fresh, ok := registry[name]
	if _, reads := datagrams[name]; ok && p.Transport == "udp" && !reads && name != NameFallback {
		return nil, fmt.Errorf("protocol on port %d: dissector %s reads connections, not datagrams: use %s, or transport tcp",
			p.Port, name, strings.Join(slices.Sorted(maps.Keys(datagrams)), ", ")+", "+NameFrames+" or "+NameFallback)
	}
	switch {
	case ok && name == NameFallback:
		return newSniffing(sniffsElse, fresh), nil
	case ok && name != NameTLS:
		return newSniffing(sniffsAlways, fresh), nil
	case ok:
		return fresh(), nil
	}
	return nil, fmt.Errorf("protocol on port %d: unknown dissector %q: use one of %s",
		p.Port, p.Dissector, strings.Join(Names(), ", "))
}

// Datagrams returns the reader of a protocol's UDP datagrams: one datagram is one
// message, and direction 1 is what comes from the protocol's port. A protocol
// whose dissector is unknown or reads connections only, which New reports, is
// read by the fallback.
func Datagrams(p model.Protocol) func(dir int, payload []byte) Unit {
	if p.Dissector == NameFrames {
		if f, err := newFrames(p); err == nil {
			return f.datagram
		}
	}
	if len(p.Lines) > 0 && p.Dissector == NameText {
		if l, err := newTextLines(p); err == nil {
			return l.datagram
		}
	}
	read, ok := datagrams[p.Dissector]
	if !ok {
		read = fallbackDatagram
	}
	return func(_ int, payload []byte) Unit { return read(payload) }
}
