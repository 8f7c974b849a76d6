package cluster

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestALinkIsNoRecord: nats.go follows one to itself without end.
func TestALinkIsNoRecord(t *testing.T) {
	c := newClass(t)
	c.offer()
	bucket := c.hub.n.files()
	b, err := json.Marshal(jetstream.ObjectInfo{Bucket: bucket, NUID: "x", ObjectMeta: jetstream.ObjectMeta{Name: "loop",
		Opts: &jetstream.ObjectMetaOptions{Link: &jetstream.ObjectLink{Bucket: bucket, Name: "loop"}}}})
	if err == nil {
		_, err = c.hub.js.Publish(t.Context(), fmt.Sprintf("$O.%s.M.%s", bucket, base64.URLEncoding.EncodeToString([]byte("loop"))), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.hub.files.Get(t.Context(), "loop"); !errors.Is(err, errLink) {
		t.Error(err)
	}
}

// TestAResultIsKeptToItsBounds: nobody knows what a runner sends.
func TestAResultIsKeptToItsBounds(t *testing.T) {
	long := strings.Repeat("é", maxText)
	for _, sent := range []result{{Error: long}, {Record: long}, {Instance: long, Record: "r"}} {
		b, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		r := readResult("netsplit.result.c-1.c-1-r0001.m1", b)
		if r.Error == "" || len(r.Error) > maxText+10 || len(r.Record)+len(r.Instance) > maxName || r.runner != "m1" || strings.ContainsRune(r.Error, 0xfffd) {
			t.Errorf("%+v", r)
		}
	}
}
