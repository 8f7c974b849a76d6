package classify

import (
	"fmt"
	"strings"

	"netsplit/model"
)

// cassGossipMost bounds the endpoints read of one gossip message.
const cassGossipMost = 128

// cassStates are the application states by number (gms.ApplicationState), per
// release. "" stands for one that changes all the time and says nothing about
// the node's place in the cluster (LOAD, SEVERITY, DISK_USAGE) or for a
// reserved number: it is read and left out.
var (
	cassStates07 = []string{"STATUS", "", "SCHEMA"}
	cassStates10 = []string{"STATUS", "", "SCHEMA", "DC", "RACK", "RELEASE_VERSION", "REMOVAL_COORDINATOR", "INTERNAL_IP", "RPC_ADDRESS"}
	cassStates12 = append(cassStates10[:9:9], "", "", "NET_VERSION", "HOST_ID", "TOKENS", "RPC_READY")
	cassStates40 = append(cassStates12[:15:15], "INTERNAL_ADDRESS_AND_PORT", "NATIVE_ADDRESS_AND_PORT", "STATUS_WITH_PORT", "SSTABLE_VERSIONS", "", "INDEX_STATUS")
)

func cassStates(version int) []string {
	switch {
	case version == cassVersion07:
		return cassStates07
	case version < 6 && version > 0:
		return cassStates10
	case version < 12:
		return cassStates12
	}
	return cassStates40
}

// cassGossipSyn reads GossipDigestSyn: cluster name, partitioner (from 1.2
// on), digests. Fields: cluster, digests: a line "ADDRESS generation=G
// version=V" per endpoint.
func cassGossipSyn(r *cassReader, version int) []model.Field {
	f := []model.Field{{Name: "cluster", Value: cut(r.utf(), 256)}}
	if version == 0 || version >= 6 {
		r.utf()
	}
	if r.short {
		return nil
	}
	return append(f, cassDigests(r, version)...)
}

// cassGossipAck reads GossipDigestAck: digests, then endpoint states.
func cassGossipAck(r *cassReader, version int) []model.Field {
	f := cassDigests(r, version)
	if version > 0 && version < 6 {
		r.u8() // whether there are states
	}
	return append(f, cassEndpoints(r, version)...)
}

func cassDigests(r *cassReader, _ int) []model.Field {
	n := r.i32()
	var lines []string
	for i := 0; i < n && !r.short; i++ {
		a, gen, ver := r.addr(), r.i32(), r.i32()
		if !r.short && len(lines) < cassGossipMost {
			lines = append(lines, fmt.Sprintf("%s generation=%d version=%d", a, gen, ver))
		}
	}
	return cassLines("digests", lines)
}

// cassEndpoints reads a map of endpoint states (EndpointStateSerializer).
// Fields: heartbeats, a line "ADDRESS generation=G version=V" per endpoint;
// endpoints, a line "ADDRESS STATE=value ..." for each of which states are
// told, in the order of the states' numbers. A value that is no plain text is
// quoted; TOKENS, which is binary, is told by a digest.
func cassEndpoints(r *cassReader, version int) []model.Field {
	names := cassStates(version)
	n := r.i32()
	var beats, lines []string
	for i := 0; i < n && !r.short && i < cassGossipMost; i++ {
		a, gen, ver := r.addr(), r.i32(), r.i32()
		if r.short {
			break
		}
		beats = append(beats, fmt.Sprintf("%s generation=%d version=%d", a, gen, ver))
		values := make([]string, len(names))
		states := r.i32()
		for j := 0; j < states && !r.short; j++ {
			k, v := r.i32(), r.utf()
			r.u32()
			if !r.short && k >= 0 && k < len(names) && names[k] != "" {
				if names[k] == "TOKENS" {
					v = cassDigest(v)
				}
				values[k] = " " + names[k] + "=" + cassText(v)
			}
		}
		if s := strings.Join(values, ""); s != "" {
			lines = append(lines, a+s)
		}
	}
	return append(cassLines("heartbeats", beats), cassLines("endpoints", lines)...)
}

// cassLines is a field with a line per item, cut at a line so that it is at
// most respText long; no field without a line.
func cassLines(name string, lines []string) []model.Field {
	if len(lines) == 0 {
		return nil
	}
	var b strings.Builder
	for _, l := range lines {
		if b.Len()+len(l) >= respText {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return []model.Field{{Name: name, Value: b.String()}}
}
