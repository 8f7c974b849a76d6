package classify_test

import (
	"encoding/xml"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/e2e/need"
)

// sharkField is a field of tshark's PDML, or a protocol that has fields.
type sharkField struct {
	Name   string       `xml:"name,attr"`
	Label  string       `xml:"showname,attr"`
	Show   string       `xml:"show,attr"`
	Fields []sharkField `xml:"field"`
}

// each visits the field and those in it.
func (f sharkField) each(visit func(sharkField)) {
	visit(f)
	for _, in := range f.Fields {
		in.each(visit)
	}
}

// amqpSharkNames are tshark's names of fields, where they differ from ours.
var amqpSharkNames = map[string]string{"channel": "amqp.channel", "body_size": "amqp.header.body-size",
	"kind": "amqp.method.arguments.type", "class": "amqp.method.arguments.class_id", "method": "amqp.method.arguments.method_id",
	"vhost":         "amqp.method.arguments.virtual_host",
	"delivery_mode": "amqp.method.properties.delivery_mode", "message_id": "amqp.method.properties.message_id",
	"correlation_id": "amqp.method.properties.correlation_id"}

// amqpNewer are methods that tshark 4.0 has no name for; RabbitMQ's decoder
// (rabbit_framing_amqp_0_9_1) has.
var amqpNewer = map[string]string{"connection.unknown (70)": "connection.update-secret", "connection.unknown (71)": "connection.update-secret-ok",
	"exchange.unknown (51)": "exchange.unbind-ok"}

// amqpShark reads the frames of a capture with tshark: by sender's and receiver's port, for
// each frame its type as ours and the value of each field.
func amqpShark(t *testing.T, path string) (map[string][]string, map[string][]map[string]string) {
	t.Helper()
	need.Program(t, "tshark", "tshark")
	out, err := exec.Command("tshark", "-r", path, "-d", "tcp.port==35672,amqp", "-Y", "amqp", "-T", "pdml", "-J", "tcp amqp").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Packets []struct {
			Protos []sharkField `xml:"proto"`
		} `xml:"packet"`
	}
	if err := xml.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	types, fields := map[string][]string{}, map[string][]map[string]string{}
	for _, p := range all.Packets {
		ports := ""
		for _, proto := range p.Protos {
			v, word := map[string]string{}, map[string]string{}
			proto.each(func(f sharkField) {
				v[f.Name] = f.Show
				_, label, _ := strings.Cut(f.Label, ": ")
				word[f.Name] = strings.ToLower(label)
			})
			if proto.Name == "tcp" {
				ports = v["tcp.srcport"] + ">" + v["tcp.dstport"]
			}
			if proto.Name != "amqp" {
				continue
			}
			name := func(key string) string {
				if strings.HasPrefix(word[key], "unknown") {
					return word[key]
				}
				w, _, _ := strings.Cut(word[key], " (")
				return w
			}
			typ := map[string]string{"": "amqp greeting", "2": "amqp header", "3": "amqp body", "8": "amqp heartbeat"}[v["amqp.type"]]
			if v["amqp.type"] == "1" {
				method := name("amqp.method.class") + "." + name("amqp.method.method")
				if newer := amqpNewer[method]; newer != "" {
					method = newer
				}
				typ = "amqp " + method
			}
			types[ports] = append(types[ports], typ)
			fields[ports] = append(fields[ports], v)
		}
	}
	return types, fields
}

// TestMethodsOfAMQP: frame by frame, methods and arguments are those that tshark reads.
func TestMethodsOfAMQP(t *testing.T) {
	want, values := amqpShark(t, filepath.Join("testdata", "rabbitmq", "methods.pcap"))
	got := map[string][]string{}
	types, compared, greetings := map[string]bool{}, map[string]bool{}, 0
	var published, confirmed []string
	for _, m := range rabbitRead(t, "methods.pcap") {
		if m.Type == "amqp greeting" { // tshark 4.0 shows none
			greetings++
			continue
		}
		ports := fmt.Sprintf("%d>%d", m.FromPort, m.ToPort)
		i := len(got[ports])
		got[ports] = append(got[ports], m.Type)
		types[m.Type] = true
		if tag, ok := m.Field("delivery_tag"); ok && m.Type == "amqp basic.ack" && m.FromPort == 35672 {
			confirmed = append(confirmed, tag)
		}
		if i >= len(values[ports]) || slices.Contains(slices.Collect(maps.Values(amqpNewer)), strings.TrimPrefix(m.Type, "amqp ")) {
			continue // one too many: the types differ; or tshark reads no arguments
		}
		for _, f := range m.Fields {
			name := amqpSharkNames[f.Name]
			switch {
			case f.Name == "text":
				continue
			case f.Name == "delivery_tag" && m.Type == "amqp basic.publish":
				published = append(published, f.Value) // counted, and in no frame
				continue
			case f.Name == "length":
				name = "amqp.length"
			case name == "":
				name = "amqp.method.arguments." + f.Name
			}
			theirs, known := values[ports][i][name]
			if f.Value == "true" || f.Value == "false" { // tshark has 0, 1, or True, False
				b, err := strconv.ParseBool(theirs)
				known, theirs = known && err == nil, strconv.FormatBool(b)
			}
			if !known || f.Value != theirs {
				t.Errorf("%s frame %d, %s: %s=%q, tshark %q", ports, i, m.Type, f.Name, f.Value, theirs)
			}
			compared[f.Name] = true
		}
	}
	// The client waited for each confirmation.
	if d := cmp.Diff(confirmed, published); d != "" || len(published) < 10 {
		t.Errorf("tags of publishes (-of acks, +of publishes):\n%s", d)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("frames by direction (-tshark +ours):\n%s", d)
	}
	if greetings != 7 || len(types) < 60 || len(compared) < 35 {
		t.Errorf("%d greetings; %d types and %d fields compared", greetings, len(types), len(compared))
	}
}
