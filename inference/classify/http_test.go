package classify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTTPTypes(t *testing.T) {
	long := strings.Repeat("0123456789", 9000)
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"length", []turn{{0, "GET /jmx?qry=a HTTP/1.1\r\nHost: n1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nGET /HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"> http GET /jmx 37", "< http reply 200 43", "< http reply 404 45"}},
		{"chunks", []turn{{0, "PUT /webhdfs/v1/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabcde\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}},
			[]string{"> http PUT /webhdfs 83", "> http GET / 18", "< http reply 100 25", "< http reply 201 57"}},
		{"to the end of the connection", []turn{{0, "GET /123 HTTP/1.0\n\n"}, {1, "HTTP/1.0 200 OK\r\n\r\nabc"}, {1, "HTTP/1.1 200"}},
			[]string{"> http GET /... 19", "< http reply 200 34"}},
		{"versions", []turn{{0, "POST /v3/kv/put HTTP/1.1\r\n\r\nGET /v1beta2/leases/7 HTTP/1.1\r\n\r\nGET /v3/123 HTTP/1.1\r\n\r\nGET /v3 HTTP/1.1\r\n\r\nGET /v123/a HTTP/1.1\r\n\r\nGET v3/kv HTTP/1.1\r\n\r\n"}},
			[]string{"> http POST /v3/kv 28", "> http GET /v1beta2/leases 34", "> http GET /... 24", "> http GET /... 20", "> http GET /... 24", "> http GET /... 22"}},
		{"no body", []turn{{0, "HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 304 N\r\n\r\n"}},
			[]string{"> http HEAD /a 20", "> http GET /b 19", "< http reply 200 38", "< http reply 304 18"}},
		{"long", []turn{{0, "GET /a HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + long}},
			[]string{"> http GET /a 19", "< http reply 200 65536", "< http reply 200 end 24506"}},
		{"tunnel", []turn{{0, "CONNECT a:1 HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\n\r\nxyz"}, {0, "\x00\x01"}},
			[]string{"> http CONNECT /... 24", "< http reply 200 19", "> http tunnel 2", "< http tunnel 3"}},
		{"not this protocol", []turn{{0, "\x00\x01\x02GET /"}, {1, "HTTQ/1.1 200 OK\r\n\r\n"}}, []string{"> unknown 8", "< unknown 19"}},
		{"a method that is not listed", []turn{{0, "PROPFIND /dav HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 207 Multi\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"> http PROPFIND /dav 35", "> http GET /a 19", "< http reply 207 41"}},
		{"the end of a request is no answer", []turn{{0, "st\r\nPROPFIND /dav HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"> unknown 39", "> http GET /a 19", "< http reply 200 38"}},
		{"another text protocol", []turn{{0, "PUB foo 5\r\nhello\r\n\r\nPRI * HTTP/2.0\r\n\r\n"}}, []string{"> unknown 38"}},
		{"behind other bytes", []turn{{0, "rest\r\nGET /a HTTP/1.1\r\n\r\n"}, {1, "xHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"> unknown 6", "> http GET /a 19", "< unknown 1", "< http reply 200 38"}},
		{"a chunk that is none", []turn{{1, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"< http reply 200 47", "< unknown 4", "< http reply 200 38"}},
		{"a header without an end", []turn{{0, "GET /" + long}, {0, "GET /b HTTP/1.1\r\n\r\n"}}, []string{"> unknown 65536", "> unknown 24469", "> http GET /b 19"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, u := range play(newHTTP(), c.turns) {
				got = append(got, types([]Unit{u})[0]+fmt.Sprintf(" %d", u.Bytes))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	us := play(newHTTP(), []turn{{0, "GET /getJournal?jid=ns&segmentTxId=19 HTTP/1.1\r\nHost: n3:8480\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 1\r\n\r\nx"}})
	for name, v := range map[string]string{"query.jid": "ns", "query.segmentTxId": "19", "host": "n3:8480", "path": "/getJournal", "method": "GET"} {
		if got := field(us[0], name); got != v {
			t.Errorf("field %s is %q, want %q", name, got, v)
		}
	}
	for name, v := range map[string]string{"code": "200", "length": "1", "type": "a/b", "request": "GET /getJournal"} {
		if got := field(us[1], name); got != v {
			t.Errorf("field %s is %q, want %q", name, got, v)
		}
	}
}

// What etcd's Raft and a watch of Kubernetes look like: an answer that goes on
// for as long as the connection lives.
func TestHTTPStream(t *testing.T) {
	long := strings.Repeat("0123456789", 7000)
	head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"chunks", []turn{{0, "GET /raft/stream/8e9e HTTP/1.1\r\n\r\n"}, {1, head}, {1, "3\r\nabc\r\n11\r\n0123456789abcdefg\r\n"}, {1, "4;x=y\r\nabcd\r\n"}, {1, "0\r\nT: v\r\n\r\n"}},
			[]string{"> http GET /raft 34", "< http reply 200 47", "< http chunk GET /raft 2^1 8", "< http chunk GET /raft 2^4 23", "< http chunk GET /raft 2^2 13", "< http chunk GET /raft 0 11"}},
		{"what follows the last one", []turn{{0, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"}, {1, head + "1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny"}},
			[]string{"> http GET /a 19", "> http GET /b 19", "< http reply 200 47", "< http chunk GET /a 2^0 6", "< http chunk GET /a 0 5", "< http reply 200 39"}},
		{"of a request", []turn{{0, "PUT /a/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"}}, []string{"> http PUT /a 49", "> http chunk PUT /a 2^0 6", "> http chunk PUT /a 0 5"}},
		{"a connection that ends in one", []turn{{0, "GET /a HTTP/1.1\r\n\r\n"}, {1, head + "5\r\nab"}}, []string{"> http GET /a 19", "< http reply 200 47", "< http chunk GET /a 2^2 5"}},
		{"a long one", []turn{{0, "GET /a HTTP/1.1\r\n\r\n"}, {1, head + "11170\r\n" + long + "\r\n1\r\nx\r\n"}},
			[]string{"> http GET /a 19", "< http reply 200 47", "< http chunk GET /a 2^16 65536", "< http chunk GET /a 2^16 end 4473", "< http chunk GET /a 2^0 6"}},
		{"one that is none", []turn{{0, "GET /a HTTP/1.1\r\n\r\n"}, {1, head + "1\r\nx\r\nzz\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}},
			[]string{"> http GET /a 19", "< http reply 200 47", "< http chunk GET /a 2^0 6", "< unknown 4", "< http reply 200 38"}},
		{"an answer whose request was not seen", []turn{{1, head + "1\r\nx\r\n"}}, []string{"< http reply 200 47", "< http chunk other /... 2^0 6"}},
		{"joined at a chunk", []turn{{1, "3\r\nabc\r\n"}, {1, "2\r\nde\r\n"}}, []string{"< http chunk other /... 2^1 8", "< http chunk other /... 2^1 7"}},
		{"joined in one", []turn{{1, "yz\r\n3\r\nabc\r\n"}, {1, "2\r\nde\r\n"}}, []string{"< unknown 4", "< http chunk other /... 2^1 8", "< http chunk other /... 2^1 7"}},
		{"joined in text", []turn{{1, "yz\r\n3\r\nghijkl\r\n"}, {1, "2\r\nde\r\n"}}, []string{"< unknown 4", "< http chunk other /... 2^1 6", "< unknown 5", "< http chunk other /... 2^1 7"}},
		{"no chunks", []turn{{0, "GET /a HTTP/1.1\r\n\r\n"}, {1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"}}, []string{"> http GET /a 19", "< http reply 200 40"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			us := play(newHTTPStream(), c.turns)
			for _, u := range us {
				got = append(got, types([]Unit{u})[0]+fmt.Sprintf(" %d", u.Bytes))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if u := us[len(us)-1]; c.name == "a connection that ends in one" && field(u, "incomplete") != "true" {
				t.Errorf("%+v is not marked incomplete", u)
			}
		})
	}
	var at []int // how much had arrived when each became known
	n, d := 0, newHTTPStream()
	for _, b := range []string{head, "3\r\nabc\r\n", "3\r\ndef", "\r\n"} {
		d.Data(1, uint64(n), []byte(b), func(u Unit) { at = append(at, n+len(b)) })
		n += len(b)
	}
	if diff := cmp.Diff([]int{47, 55, 63}, at); diff != "" {
		t.Errorf("a chunk is known when its last byte is there: %s", diff)
	}
	us := play(newHTTPStream(), []turn{{0, "GET /raft/7 HTTP/1.1\r\n\r\n"}, {1, head + "1\r\nx\r\n"}})
	if u := us[2]; field(u, "request") != "GET /raft/7" || field(u, "length") != "1" || u.Broad != "http chunk GET /... 2^0" {
		t.Errorf("%+v", u)
	}
	// Bytes are lost, more than the chunk had: the next chunk is of the same answer.
	var got []string
	emit := func(u Unit) { got = append(got, types([]Unit{u})[0]+fmt.Sprint(" ", u.Offset)) }
	d = newHTTPStream()
	d.Data(0, 0, []byte("GET /raft/7 HTTP/1.1\r\n\r\n"), emit)
	d.Data(1, 0, []byte(head+"3\r\na"), emit)
	d.Gap(1, uint64(len(head)+4), 20, emit)
	d.Data(1, uint64(len(head)+24), []byte("yz\r\n1\r\nx\r\n"), emit)
	if diff := cmp.Diff([]string{"> http GET /raft 0", "< http reply 200 0", "< http chunk GET /raft 2^1 47", "< unknown 71", "< http chunk GET /raft 2^0 75"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAChunkAfterMuchThatIsNone: the line before a chunk may lie across the end of
// what is emitted of bytes that are no message.
func TestAChunkAfterMuchThatIsNone(t *testing.T) {
	for n := httpKeep - 8; n < httpKeep+4; n++ {
		d := newHTTPStream()
		b := []byte(strings.Repeat("x", n-2) + "\r\n" + "003\r\nabc\r\n")
		steps := []step{{dir: 1, b: b}}
		us := run(t, d, steps, nil)
		covered(t, 1, us[1], steps)
		last := us[1][len(us[1])-1]
		if last.Type != "http chunk other /... 2^1" || int(last.Offset) != n || last.Bytes != len(b)-n {
			t.Errorf("%d bytes before it: %+v", n, last)
		}
	}
}
