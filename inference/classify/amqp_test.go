package classify

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// amqpBytes is a frame (AMQP 0-9-1 §4.2.3).
func amqpBytes(kind byte, channel uint16, payload string) string {
	b := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return string(b) + payload + "\xCE"
}

func amqpCall(channel, class, method uint16, args string) string {
	id := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), method)
	return amqpBytes(amqpMethodFrame, channel, string(id)+args)
}

func amqpShort(s string) string { return string(rune(len(s))) + s }

const amqpGreeting = "AMQP\x00\x00\x09\x01"

func TestAMQPFrames(t *testing.T) {
	open, closed := amqpCall(1, 20, 10, "\x00"), amqpCall(1, 20, 41, "")
	publish := amqpCall(7, 60, 40, "\x00\x00"+amqpShort("shop")+amqpShort("new")+"\x01")
	header := amqpBytes(amqpHeaderFrame, 7, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x00\x02")
	body := amqpBytes(amqpBodyFrame, 7, "hello")
	table := "\x00\x00\x08\x00" + strings.Repeat("x", 2048)
	longHeader := amqpBytes(amqpHeaderFrame, 7, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x20\x00"+table)
	longMethod := amqpCall(1, 50, 10, "\x00\x00"+amqpShort("orders")+"\x02"+table)
	for _, c := range []struct {
		name string
		in   []step
		want []string
	}{
		{"a message", []step{{b: []byte(amqpGreeting + open + publish + header + body)}},
			[]string{"> amqp greeting", "> amqp channel.open", "> amqp basic.publish", "> amqp header", "> amqp body"}},
		{"another version", []step{{b: []byte("AMQP\x03\x01\x00\x00")}}, []string{"> amqp greeting"}},
		{"heartbeats", []step{{b: []byte(amqpBytes(8, 0, "") + amqpBytes(8, 0, ""))}}, []string{"> amqp heartbeat", "> amqp heartbeat"}},
		{"a method that nobody has named", []step{{b: []byte(amqpCall(1, 60, 7, "abc") + closed)}}, []string{"> amqp method", "> amqp channel.close-ok"}},
		{"a wrong end", []step{{b: []byte(open[:len(open)-1] + "\xCF" + closed)}}, []string{"> unknown", "> amqp channel.close-ok"}},
		{"a size that is too small", []step{{b: []byte(publish[:6] + "\x05" + publish[7:] + closed)}}, []string{"> unknown", "> unknown", "> amqp channel.close-ok"}},
		{"an absurd size", []step{{b: []byte("\x03\x00\x01\xff\xff\xff\xff" + closed)}}, []string{"> unknown", "> amqp channel.close-ok"}},
		{"no kind of frame", []step{{b: []byte("\x04\x00\x01\x00\x00\x00\x00\xCE" + closed)}}, []string{"> unknown", "> amqp channel.close-ok"}},
		{"a long body", []step{{b: []byte(amqpBytes(3, 1, strings.Repeat("x", 131064)) + closed)}}, []string{"> amqp body", "> amqp body end", "> amqp channel.close-ok"}},
		{"a gap in a body", []step{{b: []byte(amqpBytes(3, 1, strings.Repeat("x", 500))[:100])}, {gap: 400}, {b: []byte("xxxxxxx\xCE" + closed)}},
			[]string{"> amqp body", "> amqp channel.close-ok"}},
		{"a gap over the end of a body, which speaks of AMQP", []step{{b: []byte(body[:9])}, {gap: 40}, {b: []byte("what AMQP is, and " + closed)}},
			[]string{"> amqp body", "> unknown", "> amqp channel.close-ok"}},
		{"a long header behind a gap, a few bytes at first", []step{{gap: 40}, {b: []byte(longHeader[:15])}, {b: []byte(longHeader[15:] + closed)}},
			[]string{"> amqp header", "> amqp channel.close-ok"}},
		{"a long method behind a gap, a few bytes at first", []step{{gap: 40}, {b: []byte(longMethod[:9])}, {b: []byte(longMethod[9:] + closed)}},
			[]string{"> amqp queue.declare", "> amqp channel.close-ok"}},
		{"begun in the middle", []step{{b: []byte("ello\xCE" + publish + header + body)}},
			[]string{"> unknown", "> amqp basic.publish", "> amqp header", "> amqp body"}},
		{"cut off", []step{{b: []byte(publish[:20])}}, []string{"> amqp basic.publish"}},
		{"HTTP", []step{{b: []byte("GET / HTTP/1.1\r\n\r\n")}}, []string{"> unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, types(run(t, newAMQP(), c.in, nil)[0])); diff != "" {
				t.Errorf("types (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMQPFields(t *testing.T) {
	long := amqpShort(strings.Repeat("é", 127))
	for _, c := range []struct{ name, in, want string }{
		{"channel.flow", amqpCall(3, 20, 20, "\x00"), "channel=3 active=false"},
		{"a batch is confirmed", amqpCall(1, 60, 80, "\x00\x00\x00\x00\x00\x00\x01\x02\x01"), "channel=1 delivery_tag=258 multiple=true"},
		{"bits", amqpCall(1, 60, 120, "\x00\x00\x00\x00\x00\x00\x00\x02\x02"), "channel=1 delivery_tag=2 multiple=false requeue=true"},
		{"an empty queue name", amqpCall(1, 50, 30, "\x00\x00\x00\x01"), "channel=1 queue="},
		{"a method that nobody has named", amqpCall(1, 60, 7, ""), "channel=1 method=60.7"},
		{"an argument cut off", amqpCall(1, 60, 60, "\x09short"), "channel=1"},
		{"a name that is no text", amqpCall(1, 50, 30, "\x00\x00"+amqpShort("a\xffb")+"\x00"), "channel=1 queue=a\uFFFDb"},
		{"a long name", amqpCall(1, 50, 30, "\x00\x00\xfe"+long[2:]+"\x00"), "channel=1 queue=" + long[2:]},
		{"text", amqpBytes(3, 2, "hello"), "channel=2 length=5 text=hello"},
		{"the longest text", amqpBytes(3, 2, strings.Repeat("x", 128)), "channel=2 length=128 text=" + strings.Repeat("x", 128)},
		{"longer", amqpBytes(3, 2, strings.Repeat("x", 129)), "channel=2 length=129"},
		{"no text", amqpBytes(3, 2, "a\x00b"), "channel=2 length=3"},
		{"bytes that are no text either", amqpBytes(3, 2, "\xff\xfe\xfd"), "channel=2 length=3"},
		{"all properties", amqpBytes(2, 2, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\xff\xf8"+amqpShort("text/plain")+amqpShort("gzip")+
			"\x00\x00\x00\x04\x01at\x01"+"\x02\x09"+amqpShort("corr")+amqpShort("reply")+amqpShort("60")+amqpShort("id7")+"\x00\x00\x00\x00\x65\x53\xf1\x00"+
			amqpShort("type")+amqpShort("user")+amqpShort("app")), "channel=2 body_size=256 delivery_mode=2 correlation_id=corr message_id=id7"},
		{"RabbitMQ's credit", amqpCall(1, 60, 202, amqpShort("ctag")+"\x00\x00\x00\x01"), "channel=1 consumer_tag=ctag"},
	} {
		us := play(newAMQP(), []turn{{0, c.in}})
		var got []string
		for _, f := range us[0].Fields {
			got = append(got, f.Name+"="+f.Value)
			if !utf8.ValidString(f.Value) {
				t.Errorf("%s: %s=%q", c.name, f.Name, f.Value)
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); len(us) != 1 || diff != "" {
			t.Errorf("%s: %d units (-want +got):\n%s", c.name, len(us), diff)
		}
	}
}

// TestAMQPCountsPublishes: the tag of a publish is told only where every publish since
// confirm.select was seen.
func TestAMQPCountsPublishes(t *testing.T) {
	selects := func(ch uint16) string { return amqpCall(ch, 85, 10, "\x00") }
	publish := func(ch uint16) string { return amqpCall(ch, 60, 40, "\x00\x00"+amqpShort("")+amqpShort("q")+"\x00") }
	both := publish(1) + publish(2)
	for _, c := range []struct {
		name string
		in   []step
		want string // tags, - where a publish has none
	}{
		{"by channel", []step{{b: []byte(publish(1) + selects(1) + both + selects(2) + both)}}, "- 1 - 2 1"},
		{"selected again", []step{{b: []byte(selects(1) + publish(1) + selects(1) + publish(1))}}, "1 2"},
		{"another channel of the number", []step{{b: []byte(selects(1) + publish(1) + amqpCall(1, 20, 10, "\x00") + publish(1) + selects(1) + publish(1))}}, "1 - 1"},
		{"the other side closes it", []step{{b: []byte(selects(1) + publish(1))}, {dir: 1, b: []byte(amqpCall(1, 20, 40, "\x00\x00\x00\x00\x00\x00\x00"))}, {b: []byte(publish(1))}}, "1 -"},
		{"a gap between frames", []step{{b: []byte(selects(1) + publish(1))}, {gap: 30}, {b: []byte(publish(1) + selects(1) + publish(1))}}, "1 - 1"},
		{"a gap in a body", []step{{b: []byte(selects(1) + publish(1) + amqpBytes(3, 1, strings.Repeat("x", 500))[:100])}, {gap: 400}, {b: []byte("xxxxxxx\xCE" + publish(1))}}, "1 2"},
		{"a gap in a method", []step{{b: []byte(selects(1) + publish(1) + selects(1)[:7])}, {gap: 4}, {b: []byte(selects(1)[11:] + publish(1))}}, "1 -"},
		{"a frame with a wrong end", []step{{b: []byte(selects(1) + publish(1) + publish(1)[:len(publish(1))-1] + "\xCF" + publish(1))}}, "1 -"},
	} {
		var got []string
		for _, u := range run(t, newAMQP(), c.in, nil)[0] {
			if u.Type != "amqp basic.publish" {
				continue
			}
			tag := "-"
			for _, f := range u.Fields {
				if f.Name == "delivery_tag" {
					tag = f.Value
				}
			}
			got = append(got, tag)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func BenchmarkAMQP(b *testing.B) {
	conversation := []byte(amqpCall(1, 60, 40, "\x00\x00"+amqpShort("shop")+amqpShort("new")+"\x01") +
		amqpBytes(2, 1, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x80\x02"+amqpShort("id7")) + amqpBytes(3, 1, "hello") +
		amqpCall(1, 60, 80, "\x00\x00\x00\x00\x00\x00\x01\x02\x01"))
	b.ReportAllocs()
	d, off := newAMQP(), uint64(0)
	for range b.N { // four frames
		d.Data(0, off, conversation, func(Unit) {})
		off += uint64(len(conversation))
	}
}
