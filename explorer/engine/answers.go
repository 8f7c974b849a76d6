package engine

import (
	"slices"
	"strconv"
	"strings"

	"netsplit/model"
)

// answerIDs are the fields by which an answer tells what it answers: the request's, and the
// answer's. Those of CQL, Thrift, Hadoop RPC, ZooKeeper's clients, JSON-RPC and Cassandra, whose
// answers take another connection, and those of Maelstrom and its kin. Of the others, RESP and
// HTTP/1.1 (RFC 9112 §9.3.2) answer in order.
var answerIDs = [][2]string{{"stream", "stream"}, {"seqid", "seqid"}, {"rpc.call", "rpc.call"}, {"xid", "xid"}, {"id", "id"},
	{"msg_id", "in_reply_to"}, {"body.msg_id", "body.in_reply_to"}}

// maxOpen is how many requests without an answer are kept, the latest.
const maxOpen = 4096

// request is a message whose answer is waited for.
type request struct {
	num      uint64
	typ      string
	from, to model.NodeID
	stream   string
	id       [2]string // of answerIDs, and its value; "": none

	channel, tag string // of AMQP
	seqno        string // of HDFS's packets
}

// answers pairs messages with the requests that faults of answers select.
type answers struct{ open []*request }

// asked keeps a request until its answer comes.
func (a *answers) asked(m *model.Message) {
	r := &request{num: m.Num, typ: m.Type, from: m.From, to: m.To, stream: m.Stream}
	r.channel, _ = m.Field("channel")
	r.tag, _ = m.Field("delivery_tag")
	r.seqno, _ = m.Field("seqno")
	for _, n := range answerIDs {
		if v, ok := m.Field(n[0]); ok {
			r.id = [2]string{n[1], v}
			break
		}
	}
	if len(a.open) == maxOpen {
		a.open = a.open[1:]
	}
	a.open = append(a.open, r)
}

// of is the request that a message answers; nil: none of those kept. byPlace says that
// nothing but its place tells so: it is the next message back.
func (a *answers) of(m *model.Message) (r *request, byPlace bool) {
	i := slices.IndexFunc(a.open, func(r *request) bool {
		fits, next := r.answeredBy(m)
		if fits {
			byPlace = next
		}
		return fits
	})
	if i < 0 {
		return nil, false
	}
	r = a.open[i]
	if all, _ := m.Field("multiple"); all == "true" { // of AMQP: it answers those before, too
		a.open = slices.DeleteFunc(a.open, func(r *request) bool { fits, _ := r.answeredBy(m); return fits })
	} else {
		a.open = slices.Delete(a.open, i, i+1)
	}
	return r, byPlace
}

func (r *request) answeredBy(m *model.Message) (fits, byPlace bool) {
	proto, _, _ := strings.Cut(r.typ, " ")
	if m.From != r.to || m.To != r.from || strings.HasPrefix(m.Type, "tcp ") || strings.HasPrefix(m.Type, "arp ") {
		return false, false
	}
	if r.id[0] != "" {
		v, ok := m.Field(r.id[0])
		where := m.Stream == reverse(r.stream)
		switch {
		case proto == "cassandra": // by another connection, and the other side counts from 1, too
			where = strings.Contains(m.Type, "_RSP") || strings.Contains(m.Type, "RESPONSE")
		case strings.HasSuffix(r.id[0], "in_reply_to"): // which is of no request
			where = true
		}
		return ok && v == r.id[1] && where && strings.HasPrefix(m.Type, proto+" "), false
	}
	if m.Stream != reverse(r.stream) {
		return false, false
	}
	named := strings.TrimPrefix(r.typ, proto+" ")
	of, _ := m.Field("request")
	switch proto {
	case "http":
		return strings.HasPrefix(m.Type, "http reply"), false
	case "resp":
		return of == named || begins(m.Type, "resp reply "+named), false
	case "rpc":
		return begins(m.Type, r.typ+" reply") || begins(m.Type, r.typ+" error"), false
	case "amqp":
		return r.answeredByAMQP(m, named), false
	case "hdfs":
		if seqno, _ := m.Field("seqno"); begins(named, "packet") {
			return begins(m.Type, "hdfs ack") && r.seqno != "" && seqno == r.seqno, false
		}
		op, _, _ := strings.Cut(named, " ")
		return begins(m.Type, "hdfs "+op+" reply"), false
	}
	return true, !strings.HasPrefix(m.Type, r.typ) // X-ok to X
}

// answeredByAMQP: a method X is answered by X-ok on its channel (AMQP 0-9-1 §2.2.2), a get by get-empty as
// well; a message by its tag, or by a later one's that is of several (§1.8.3.13).
func (r *request) answeredByAMQP(m *model.Message, method string) bool {
	if ch, _ := m.Field("channel"); ch != r.channel {
		return false
	}
	switch method {
	case "basic.publish", "basic.deliver", "basic.get-ok":
		if m.Type != "amqp basic.ack" && m.Type != "amqp basic.nack" && m.Type != "amqp basic.reject" {
			return false
		}
		tag, _ := m.Field("delivery_tag")
		if all, _ := m.Field("multiple"); all != "true" {
			return r.tag != "" && tag == r.tag
		}
		ours, err := strconv.ParseUint(r.tag, 10, 64)
		last, bad := strconv.ParseUint(tag, 10, 64)
		return err == nil && bad == nil && (ours <= last || last == 0) // 0: all
	case "basic.get":
		return m.Type == "amqp basic.get-ok" || m.Type == "amqp basic.get-empty"
	}
	return m.Type == r.typ+"-ok"
}

// begins says whether a type begins with these words.
func begins(typ, with string) bool { return typ == with || strings.HasPrefix(typ, with+" ") }

// reverse names the other direction of a stream (model.Message): its two ends are swapped,
// and what is behind them stays.
func reverse(stream string) string {
	proto, rest, _ := strings.Cut(stream, " ")
	rest, behind, _ := strings.Cut(rest, " ") // " to n2": of a copy
	rest, n, tcp := strings.Cut(rest, "#")
	from, to, _ := strings.Cut(rest, ">")
	out := proto + " " + to + ">" + from
	if tcp {
		out += "#" + n
	}
	if behind != "" {
		out += " " + behind
	}
	return out
}
