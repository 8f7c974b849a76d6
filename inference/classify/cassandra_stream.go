package classify

import "strconv"

// cassStreams are the messages of connections that carry files, by number
// (streaming.messages.StreamMessage.Type): before 4.0, and from then on.
var (
	cassStreams   = []string{1: "PREPARE", 2: "FILE", 3: "RECEIVED", 4: "RETRY", 5: "COMPLETE", 6: "SESSION_FAILED", 7: "KEEP_ALIVE"}
	cassStreams40 = []string{1: "PREPARE_SYN", 2: "STREAM", 3: "RECEIVED", 5: "COMPLETE", 6: "SESSION_FAILED", 7: "KEEP_ALIVE", 8: "PREPARE_SYNACK", 9: "PREPARE_ACK", 10: "STREAM_INIT"}
)

func cassStreamName(n byte, version int) string {
	names := cassStreams
	if version >= cassVersion40 {
		names = cassStreams40
	}
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return "data"
}

// cassStreamInitSize frames the connect of a stream before 4.0
// (StreamInitMessage): magic, header word, address, session, plan, operation,
// and as many flags as the version has.
func cassStreamInitSize(b []byte, version int) int64 {
	r := cassReader{b: b[:min(len(b), frameLook)], off: 8}
	r.addr()
	r.bytes(20)
	r.utf()
	r.bytes(min(version, 3))
	if r.short {
		if len(b) >= frameLook {
			return -1
		}
		return 0
	}
	return int64(r.off)
}

// cassStreamSize frames a message of a stream. Files have no length that can
// be told, and end when the other side answers.
func cassStreamSize(b []byte, version int) int64 {
	r := cassReader{b: b[:min(len(b), frameLook)]}
	switch cassStreamName(r.u8(), version) {
	case "COMPLETE", "SESSION_FAILED", "KEEP_ALIVE":
		return 1
	case "RECEIVED", "RETRY":
		return 1 + 16 + 4
	case "PREPARE", "PREPARE_SYN":
		requests := r.u32()
		if !r.short && requests > 0 {
			return frameOpen // they hold tokens of any kind
		}
		return cassSummaries(&r)
	case "PREPARE_SYNACK", "PREPARE_ACK":
		return cassSummaries(&r)
	case "STREAM_INIT":
		r.addr()
		r.bytes(20)
		r.utf()
		if repair := r.u8(); repair == 1 {
			r.bytes(16)
		}
		r.u32()
		if !r.short {
			return int64(r.off)
		}
		if len(b) < frameLook {
			return 0
		}
	}
	return frameOpen
}

// cassSummaries frames a list of StreamSummary: table, files, size.
func cassSummaries(r *cassReader) int64 {
	n := r.u32()
	switch {
	case r.short:
		return 0
	case n > 1<<16:
		return frameOpen
	}
	return int64(r.off) + 28*int64(n)
}

func (c *cassandra) streamed(d *cassDir, h frameHead) Unit {
	if len(h.b) == 0 {
		return Unit{Type: "cassandra stream data"}
	}
	name := cassStreamName(h.b[0], d.version)
	u := Unit{Type: "cassandra stream " + name}
	r := cassReader{b: h.b, off: 1}
	switch name {
	case "STREAM_INIT":
		from := r.addr()
		r.u32()
		u.Fields = cassFields("from", from, "plan", r.uuid(), "operation", cut(r.utf(), 64))
	case "RECEIVED", "RETRY":
		table := r.uuid()
		u.Fields = cassFields("table", table, "sequence", strconv.Itoa(r.i32()))
	case "FILE", "STREAM":
		u.Fields = cassFields("table", r.uuid())
	}
	return u
}
