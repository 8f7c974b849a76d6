package classify

import (
	"maps"
	"slices"
	"strings"

	"netsplit/model"
)

// anyReader are the words that types of messages begin with whatever readers there are:
// transport events, what ports without a reader carry, and what is told by its first bytes.
var anyReader = []string{"arp", "rpc", sshName, "tcp", "tls", "udp", model.TypeUnknown}

// begins has, by reader, the word that its types begin with. "": it has none of its own.
var begins = map[string]string{
	NameAMQP: "amqp", NameErlang: "erlang", NameRESP: "resp", NameCassandra: "cassandra", NameThrift: "thrift", NameCQL: "cql",
	NameText: "text", NameJSON: "json", NameHTTP: "http", NameHTTPStream: "http", NameFallback: "", NameTLS: "tls", NameFrames: "frame",
	NameHadoopRPC: "rpc", NameHDFSData: "hdfs", NameHadoopWritable: "rpc", NameHDFSWritable: "hdfs",
	NameZooKeeper: "zk", NameZooKeeperFLE: "zk", NameZooKeeperZAB: "zk",
}

// Begins lists the words that types of messages can begin with, sorted, given what is read on
// which port.
func Begins(ps []model.Protocol) []string {
	words := map[string]bool{}
	for _, w := range anyReader {
		words[w] = true
	}
	for _, p := range ps {
		if w := begins[p.Dissector]; w != "" {
			words[w] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// CanGive says whether a message may have a type of this pattern, in which * is any text. What
// follows the first word of a type is learned from traffic, so it is not looked at.
func CanGive(ps []model.Protocol, pattern string) bool {
	lit, _, open := strings.Cut(pattern, "*")
	return slices.ContainsFunc(Begins(ps), func(w string) bool {
		return strings.HasPrefix(lit, w+" ") || lit == w || open && strings.HasPrefix(w+" ", lit)
	})
}
