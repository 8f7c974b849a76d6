package engine_test

import (
	"slices"
	"strings"
	"testing"

	"netsplit/explorer/engine"
	"netsplit/model"
)

// says are messages between a, which asks, and b: who sends, on which connection, the type, and
// a field.
type says struct {
	from, conn, typ, field, value string // words: fields, and their values
}

func (s says) message(num uint64) *model.Message {
	m := &model.Message{Num: num, Type: s.typ, From: "a", To: "b", Stream: "tcp 10.0.0.1:4" + s.conn + ">10.0.0.2:7#2"}
	if s.from == "b" {
		m.From, m.To, m.Stream = "b", "a", "tcp 10.0.0.2:7>10.0.0.1:4"+s.conn+"#2"
	}
	values := strings.Fields(s.value)
	for i, f := range strings.Fields(s.field) {
		m.Fields = append(m.Fields, model.Field{Name: f, Value: values[i]})
	}
	return m
}

// TestTheAnswerIsLostAndNotTheRequest: the fault is about requests of type "* Q" and acts on
// what answers them, by what the protocol says of it.
func TestTheAnswerIsLostAndNotTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		nth     int
		says    []says
		lost    uint64 // message; 0: none
		request uint64
		byPlace int
	}{
		"by id, out of order":            {0, []says{{"a", "1", "zk Q", "xid", "1"}, {"a", "1", "zk Q", "xid", "2"}, {"b", "1", "zk event", "", ""}, {"b", "1", "zk Q reply", "xid", "2"}}, 4, 2, 0},
		"the second answer":              {2, []says{{"a", "1", "zk Q", "xid", "1"}, {"a", "1", "zk Q", "xid", "2"}, {"b", "1", "zk Q reply", "xid", "2"}, {"b", "1", "zk Q reply", "xid", "1"}}, 4, 1, 0},
		"an id counts on its connection": {0, []says{{"a", "1", "cql Q", "stream", "1"}, {"b", "2", "cql reply", "stream", "1"}}, 0, 0, 0},
		"Cassandra answers elsewhere":    {0, []says{{"a", "1", "cassandra Q", "id", "1"}, {"b", "2", "cassandra READ_REQ", "id", "1"}, {"b", "2", "cassandra MUTATION_RSP", "id", "1"}}, 3, 1, 0},
		"in_reply_to":                    {0, []says{{"a", "1", "json Q", "body.msg_id", "7"}, {"b", "1", "json x", "body.msg_id", "7"}, {"b", "2", "json ok", "body.in_reply_to", "7"}}, 3, 1, 0},
		"by name, a push before it":      {0, []says{{"a", "1", "resp Q", "", ""}, {"b", "1", "resp push", "", ""}, {"b", "1", "resp reply GET", "", ""}, {"b", "1", "resp reply Q", "", ""}}, 4, 1, 0},
		"an error by name":               {0, []says{{"a", "1", "resp Q", "", ""}, {"b", "1", "resp error MOVED Q", "request", "Q"}}, 2, 1, 0},
		"of a call":                      {0, []says{{"a", "1", "rpc Q", "", ""}, {"b", "1", "rpc P reply", "", ""}, {"b", "1", "rpc Q error", "", ""}}, 3, 1, 0},
		"HTTP":                           {0, []says{{"a", "1", "http Q", "", ""}, {"b", "1", "http reply 200", "", ""}}, 2, 1, 0},
		"HDFS names a reply":             {0, []says{{"a", "1", "hdfs Q", "", ""}, {"b", "1", "hdfs Q reply ERROR", "", ""}}, 2, 1, 0},
		"of a stage of HDFS":             {0, []says{{"a", "1", "hdfs WRITE_BLOCK Q", "", ""}, {"a", "1", "hdfs packet", "seqno", "0"}, {"b", "1", "hdfs ack", "seqno", "0"}, {"b", "1", "hdfs WRITE_BLOCK reply", "", ""}}, 4, 1, 0},
		"a packet of HDFS":               {0, []says{{"a", "1", "hdfs packet Q", "seqno", "1"}, {"b", "1", "hdfs ack heartbeat", "seqno", "-1"}, {"b", "1", "hdfs ack", "seqno", "0"}, {"b", "1", "hdfs ack ERROR", "seqno", "1"}}, 4, 1, 0},
		"X-ok to X":                      {0, []says{{"a", "1", "json Q", "", ""}, {"b", "1", "json Q-ok", "", ""}}, 2, 1, 0},
		"the next message back":          {0, []says{{"a", "1", "text Q", "", ""}, {"a", "1", "text P", "", ""}, {"b", "2", "text OK", "", ""}, {"b", "1", "tcp fin", "", ""}, {"b", "1", "text OK", "", ""}}, 5, 1, 1},
		"of another request":             {0, []says{{"a", "1", "text P", "", ""}, {"b", "1", "text OK", "", ""}}, 0, 0, 0},
	} {
		answersLost(t, name, "* Q", c.nth, c.says, []uint64{c.lost}, []uint64{c.request}, c.byPlace)
	}
}

// TestTheAnswersOfAMQP: by channel, and messages by their tags.
func TestTheAnswersOfAMQP(t *testing.T) {
	const tag, ack = "channel delivery_tag", "channel delivery_tag multiple"
	publish := func(at string) says { return says{"a", "1", "amqp basic.publish", tag, at} }
	for name, c := range map[string]struct {
		asks           string
		says           []says
		lost, requests []uint64
	}{
		"by name and channel": {"amqp queue.*", []says{{"a", "1", "amqp queue.bind", "channel", "1"}, {"b", "1", "amqp queue.bind-ok", "channel", "2"},
			{"b", "1", "amqp basic.deliver", tag, "1 1"}, {"b", "1", "amqp queue.declare-ok", "channel", "1"}, {"b", "1", "amqp queue.bind-ok", "channel", "1"}}, []uint64{5}, []uint64{1}},
		"a confirmation": {"amqp basic.publish", []says{publish("1 1"), publish("1 2"), {"a", "1", "amqp header", "channel", "1"}, {"b", "1", "amqp heartbeat", "channel", "0"},
			{"b", "1", "amqp basic.ack", ack, "1 2 false"}, {"b", "1", "amqp basic.nack", ack, "1 1 false"}}, []uint64{5, 6}, []uint64{2, 1}},
		"of several": {"amqp basic.publish", []says{publish("1 8"), publish("1 9"), publish("1 10"), publish("2 1"), {"b", "1", "amqp basic.ack", ack, "1 9 true"},
			{"b", "1", "amqp basic.ack", ack, "1 10 true"}, {"b", "1", "amqp basic.ack", ack, "2 0 true"}}, []uint64{5, 6, 7}, []uint64{1, 3, 4}},
		"nothing is confirmed": {"amqp basic.publish", []says{{"a", "1", "amqp basic.publish", "channel", "1"}, {"b", "1", "amqp basic.ack", ack, "1 1 false"}, {"b", "1", "amqp basic.return", "channel", "1"}}, nil, nil},
		"an empty queue":       {"amqp basic.get", []says{{"a", "1", "amqp basic.get", "channel", "1"}, {"b", "1", "amqp basic.get-empty", "channel", "1"}}, []uint64{2}, []uint64{1}},
		"a consumer":           {"amqp basic.deliver", []says{{"a", "1", "amqp basic.deliver", tag, "1 1"}, {"b", "1", "amqp basic.reject", tag, "1 1"}}, []uint64{2}, []uint64{1}},
	} {
		answersLost(t, name, c.asks, 0, c.says, c.lost, c.requests, 0)
	}
}

// answersLost plays a fault that loses answers to requests of a type: which messages it loses, and
// what they answer; 0: none.
func answersLost(t *testing.T, name, asks string, nth int, all []says, lost, requests []uint64, byPlace int) {
	t.Helper()
	e := engine.New(model.Scenario{Steps: []model.Step{{Do: model.Fault{Message: &model.MessageFault{
		Kind: model.FaultLose, Answer: true, Nth: nth, Times: max(len(requests), 1), Match: model.MessageMatch{Type: asks, From: "a", To: "b"}}}}}})
	e.Step(model.Event{Kind: model.EventWorkload})
	for i, s := range all {
		num := uint64(i + 1)
		m := s.message(num)
		e.Step(model.Event{Num: num, Kind: model.EventMessage, Message: m})
		ds := e.Step(model.Event{Num: num, Kind: model.EventPacket, Packet: &model.HeldPacket{Frame: num, From: m.From, To: m.To, Stream: m.Stream, Messages: []uint64{num}, Payload: 1}})
		if got := ds[len(ds)-1].Action; (got == model.DropPacket) != slices.Contains(lost, num) {
			t.Errorf("%s: message %d: %s", name, num, got)
		}
	}
	p := e.Result().Faults[0]
	var got []uint64
	for _, h := range p.Hits {
		got = append(got, h.Request)
	}
	requests = slices.DeleteFunc(requests, func(n uint64) bool { return n == 0 })
	if !slices.Equal(got, requests) || p.ByPlace != byPlace {
		t.Errorf("%s: %+v, want answers to %v, %d by place", name, p, requests, byPlace)
	}
}
