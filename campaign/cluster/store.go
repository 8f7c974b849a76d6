package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// store is where a runner puts its records, or the daemon what runners need.
type store struct {
	jetstream.ObjectStore
	bucket string
	stream jetstream.Stream // below the object store
}

func openStore(ctx context.Context, js jetstream.JetStream, bucket string) (s store, err error) {
	s.bucket = bucket
	if s.ObjectStore, err = js.ObjectStore(ctx, bucket); err != nil {
		return s, err
	}
	s.stream, err = js.Stream(ctx, "OBJ_"+bucket)
	return s, err
}

// Delete removes a record, if it exists. ObjectStore.Delete would leave a marker in its place for
// good, so one for each run that was ever made. Stream and subjects: NATS ADR-20, JetStream based
// object stores.
func (s store) Delete(ctx context.Context, name string) error {
	info, err := s.GetInfo(ctx, name, jetstream.GetObjectInfoShowDeleted())
	if errors.Is(err, jetstream.ErrObjectNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	// The name goes last: until then the record can be found, and removed again.
	for _, subject := range []string{
		fmt.Sprintf("$O.%s.C.%s", s.bucket, info.NUID),
		fmt.Sprintf("$O.%s.M.%s", s.bucket, base64.URLEncoding.EncodeToString([]byte(name))),
	} {
		if err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
	}
	return nil
}

// all lists the records, by subject. ObjectStore.List waits without end for records that are removed
// as it begins (nats.go 1.55: the watcher's end comes with the last of those that were there).
func (s store) all(ctx context.Context) ([]*jetstream.ObjectInfo, error) {
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(fmt.Sprintf("$O.%s.M.*", s.bucket)))
	if err != nil {
		return nil, err
	}
	var out []*jetstream.ObjectInfo
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		m, err := s.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var o jetstream.ObjectInfo
		if json.Unmarshal(m.Data, &o) == nil { // else it is no record, and a runner lies
			out = append(out, &o)
		}
	}
	return out, nil
}

// tidy removes pieces that came before a time and belong to none of these records, which are all:
// their runner was killed as it sent them.
func (s store) tidy(ctx context.Context, records []*jetstream.ObjectInfo, before time.Time) error {
	whole := map[string]bool{}
	for _, o := range records {
		whole[o.NUID] = true
	}
	prefix := fmt.Sprintf("$O.%s.C.", s.bucket)
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(prefix+"*"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		if whole[strings.TrimPrefix(subject, prefix)] {
			continue
		}
		last, err := s.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !last.Time.Before(before) {
			continue
		}
		if err == nil {
			err = s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readTime is how long a read of a record waits before it looks whether it is to go on.
const readTime = 10 * time.Second

// errLink says that an object stands for another one.
var errLink = errors.New("it is a link to another object, which netsplit never makes")

// Get opens a record. ctx bounds the time in which it is read. A link is refused: nats.go 1.55
// follows one that leads to itself until its stack overflows. One that takes the object's place
// just now is followed for readTime.
func (s store) Get(ctx context.Context, name string, opts ...jetstream.GetObjectOpt) (jetstream.ObjectResult, error) {
	info, err := s.GetInfo(ctx, name)
	if err != nil {
		return nil, err
	}
	if info.Opts != nil && info.Opts.Link != nil {
		return nil, fmt.Errorf("%s: %w", name, errLink)
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(readTime, cancel)
	object, err := s.ObjectStore.Get(rolling{ctx, readTime}, name, opts...)
	if !late.Stop() {
		if err == nil {
			_ = object.Close()
		}
		err = fmt.Errorf("%s does not begin within %v", name, readTime)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return patient{object}, nil
}

// rolling is a context whose deadline is never far; Done ends it. With each read, a record sets a
// timer for the deadline of its context, which keeps the record's memory until then (objResult in
// nats.go 1.55): with an hour, that of all records of the last hour.
type rolling struct {
	context.Context
	readTime time.Duration
}

// Deadline implements context.Context.
func (r rolling) Deadline() (time.Time, bool) { return time.Now().Add(r.readTime), true }

// patient reads on after a deadline that passed, until the record's context has ended.
type patient struct{ jetstream.ObjectResult }

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	for {
		if n, err := p.ObjectResult.Read(b); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// records is where a runner puts its records. A bucket stays as long as the daemon runs, and so
// does its handle.
func (h *Hub) records(ctx context.Context, runner string) (store, error) {
	h.mu.Lock()
	s, ok := h.stores[runner]
	h.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := openStore(ctx, h.js, h.n.records(runner))
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stores[runner] = s
	}
	return s, err
}
