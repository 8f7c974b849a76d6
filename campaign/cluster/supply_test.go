package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsplit/model"
)

// asks has a runner ask for a set, into a folder that is alone in its own.
func (h *hand) asks(set string) (dir string, err error) {
	h.c.Helper()
	dir = filepath.Join(h.c.TempDir(), "in")
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.c.Context(), patience)
	defer cancel()
	return dir, supplies{r: h.r}.Software(ctx, set, dir)
}

// aSet is a set of software of three files, one of them larger than a piece of an object.
func aSet(t *testing.T) (dir string, large []byte) {
	t.Helper()
	dir, large = t.TempDir(), make([]byte, 300<<10)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o700), os.WriteFile(filepath.Join(dir, "bin", "java"), []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(filepath.Join(dir, ".stamp"), []byte("{}"), 0o600), os.WriteFile(filepath.Join(dir, "large.jar"), large, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir, large
}

// TestASetFromTheDaemonsCache comes whole, for all users of the machine, however often it is
// asked for.
func TestASetFromTheDaemonsCache(t *testing.T) {
	c := newClass(t)
	from, large := aSet(t)
	c.software = func(set string) (string, string, error) {
		if set != "jdk-21" {
			return "", "", fmt.Errorf("set %s is not there", set)
		}
		return from, "h1", nil
	}
	h := c.starts(&hand{name: "m1"})
	for range 2 {
		dir, err := h.asks("jdk-21")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]struct {
			text string
			mode fs.FileMode
		}{"bin/java": {"#!/bin/sh\n", 0o755}, ".stamp": {"{}", 0o644}, "large.jar": {string(large), 0o644}} {
			st, err := os.Stat(filepath.Join(dir, name))
			if err != nil || st.Mode() != want.mode {
				t.Errorf("%s: %v, %v", name, st, err)
				continue
			}
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want.text {
				t.Errorf("%s has %d bytes, %v", name, len(b), err)
			}
		}
		writesNothing(t, "the set", dir, filepath.Join(dir, "outside"))
	}
	for _, set := range []string{"jdk-17", "../../etc", "", "a b"} {
		if _, err := h.asks(set); err == nil || !strings.Contains(err.Error(), "set "+set+" is not there") || !strings.Contains(err.Error(), "daemon's cache") {
			t.Errorf("set %q: %v", set, err)
		}
	}
}

// TestASetThatChanges while the daemon reads it is not taken for either, and can be asked for
// again.
func TestASetThatChanges(t *testing.T) {
	c := newClass(t)
	from, _ := aSet(t)
	var calls atomic.Int32
	c.software = func(string) (string, string, error) {
		if calls.Add(1) == 1 {
			return from, "before", nil
		}
		return from, "after", nil
	}
	h := c.starts(&hand{name: "m1"})
	dir, err := h.asks("jdk-21")
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("a set that changed: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has %v, %v", left, err)
	}
	if _, err := c.hub.files.GetInfo(t.Context(), "software/before"); !errors.Is(err, jetstream.ErrObjectNotFound) {
		t.Errorf("what was read stays: %v", err)
	}
	if _, err := h.asks("jdk-21"); err != nil {
		t.Errorf("asked again: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	c.software = func(string) (string, string, error) { return gone, "gone", nil }
	if _, err := h.asks("jdk-21"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a set that was removed: %v", err)
	}
}

// TestASetThatIsDamaged on its way is refused.
func TestASetThatIsDamaged(t *testing.T) {
	c := newClass(t)
	from, _ := aSet(t)
	c.software = func(string) (string, string, error) { return from, "h1", nil }
	h := c.starts(&hand{name: "m1"})
	if _, err := h.asks("jdk-21"); err != nil {
		t.Fatal(err)
	}
	info, err := c.hub.files.GetInfo(t.Context(), "software/h1")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.hub.js.Stream(t.Context(), "OBJ_"+c.hub.n.files())
	if err != nil {
		t.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(t.Context(), "$O."+c.hub.n.files()+".C."+info.NUID)
	if err == nil {
		err = stream.DeleteMsg(t.Context(), last.Sequence)
	}
	if err != nil || info.Chunks < 2 {
		t.Fatal(info.Chunks, err)
	}
	if _, err := h.asks("jdk-21"); err == nil || !strings.Contains(err.Error(), "set jdk-21 from the daemon's cache: ") {
		t.Errorf("a set without its end: %v", err)
	}
	// A whole archive that is not the one that the daemon means.
	if _, err := c.hub.files.PutBytes(t.Context(), "software/h1", hostile(t, "/outside")["half"]); err != nil {
		t.Fatal(err)
	}
	if _, err := h.asks("jdk-21"); err == nil || !strings.Contains(err.Error(), "the daemon's cache") {
		t.Errorf("another archive: %v", err)
	}
}

// TestASetThatIsHostile writes nothing outside of the folder that it was asked for.
func TestASetThatIsHostile(t *testing.T) {
	c := newClass(t)
	outside := filepath.Join(t.TempDir(), "outside")
	sets := hostile(t, outside)
	from, _ := aSet(t)
	c.software = func(set string) (string, string, error) { return from, sum([]byte(set)), nil }
	h := c.starts(&hand{name: "m1"})
	for name, archive := range sets {
		if _, err := c.hub.files.PutBytes(t.Context(), "software/"+sum([]byte(name)), archive); err != nil {
			t.Fatal(err)
		}
		dir, err := h.asks(name)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		}
		writesNothing(t, name, dir, outside)
	}
}

// TestASetOfAnotherHash than the daemon said is refused, whole as it is.
func TestASetOfAnotherHash(t *testing.T) {
	t.Parallel()
	url, _ := natsServer(t, nil)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	files, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: names(DefaultName).files()})
	if err != nil {
		t.Fatal(err)
	}
	from, _ := aSet(t)
	var archive bytes.Buffer
	if err := pack(from, &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := files.PutBytes(t.Context(), "x", archive.Bytes()); err != nil {
		t.Fatal(err)
	}
	_, err = nc.Subscribe("netsplit.software.m1", func(m *nats.Msg) {
		a := answer{File: "x", Hash: sum(archive.Bytes())}
		if string(m.Data) == "another" {
			a.Hash = sum([]byte("another"))
		}
		b, err := (&Hub{}).seal("software "+string(m.Data), a)
		if err = errors.Join(err, m.Respond(b)); err != nil {
			t.Error(err)
		}
	})
	if err = errors.Join(err, nc.Flush()); err != nil {
		t.Fatal(err)
	}
	r, err := Join(RunnerConfig{URL: url, About: model.Runner{Name: "m1"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.nc.Close()
	h := &hand{c: &class{T: t}, r: r}
	if _, err := h.asks("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.asks("another"); err == nil || !strings.Contains(err.Error(), "other bytes than its hash says") {
		t.Errorf("another hash: %v", err)
	}
}
