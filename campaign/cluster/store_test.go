package cluster

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// TestRecordsAreListed, also while others are removed.
func TestRecordsAreListed(t *testing.T) {
	c := newClass(t)
	c.offer()
	names := func() (out []string) {
		records, err := c.hub.files.all(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range records {
			if o.NUID == "" || o.Size != 1 {
				t.Errorf("%+v", o)
			}
			out = append(out, o.Name)
		}
		return out
	}
	for _, name := range []string{"b", "a/x y", "c"} {
		if _, err := c.hub.files.Put(t.Context(), jetstream.ObjectMeta{Name: name}, strings.NewReader("1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.hub.files.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 2 || !slices.Contains(got, "a/x y") || !slices.Contains(got, "b") {
		t.Errorf("listed %q", got)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() {
		for range 100 {
			_, err := c.hub.files.Put(t.Context(), jetstream.ObjectMeta{Name: "d"}, strings.NewReader("1"))
			if err := errors.Join(err, c.hub.files.Delete(t.Context(), "d")); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		names()
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
