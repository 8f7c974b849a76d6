package store

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"netsplit/model"
)

// Tx is a transaction. Its methods are those of the Store.
type Tx struct{ t kvTx }

// Limits of one page of a list. Who asks for more than MaxLimit gets MaxLimit.
const (
	DefaultLimit = 100
	MaxLimit     = 200
)

// envelope is a stored value; v is the version of the layout of d.
type envelope[T any] struct {
	V int `json:"v"`
	D T   `json:"d"`
}

const valueVersion = 1

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(envelope[any]{V: valueVersion, D: v})
	if err != nil {
		return nil, fmt.Errorf("store: encode %T: %w", v, err)
	}
	return b, nil
}

func decode[T any](b []byte) (T, error) {
	var e envelope[T]
	err := json.Unmarshal(b, &e)
	if err == nil && e.V == valueVersion {
		return e.D, nil
	}
	var v T
	var version envelope[json.RawMessage]
	if json.Unmarshal(b, &version) == nil && version.V != valueVersion {
		return v, fmt.Errorf("store: value of %T has version %d, this netsplit knows %d: use the netsplit that wrote it", v, version.V, valueVersion)
	}
	return v, fmt.Errorf("store: %w: value of %T: %w", model.ErrDamaged, v, err)
}

// key joins fields: a string is followed by a zero byte, so that no string's
// key is a prefix of another's; a number is 8 bytes big-endian.
func key(fields ...any) []byte {
	var k []byte
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			k = append(append(k, f...), 0)
		case uint64:
			k = binary.BigEndian.AppendUint64(k, f)
		case time.Time:
			var n uint64 // the zero time and all before 1970 sort first
			if f.Unix() > 0 {
				n = uint64(f.UnixNano())
			}
			k = binary.BigEndian.AppendUint64(k, n)
		}
	}
	return k
}

func lastField(k []byte, skip int) string { return strings.TrimSuffix(string(k[skip:]), "\x00") }

func checkID(what, id string) error {
	if id == "" || len(id) > 1024 || strings.ContainsRune(id, 0) {
		return fmt.Errorf("store: %w: %s id %q: want 1 to 1024 bytes, none of them zero", model.ErrInvalid, what, id)
	}
	return nil
}

func (x *Tx) put(bucket string, k []byte, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return x.t.put(bucket, k, b)
}

func get[T any](x *Tx, bucket, what, id string) (T, error) {
	var zero T
	b := x.t.get(bucket, key(id))
	if b == nil {
		return zero, fmt.Errorf("%s %q: %w", what, id, model.ErrNotFound)
	}
	return decode[T](b)
}

// page reads one page of a list: the keys of bucket that begin with prefix.
// item turns a key and its value into an element, or returns nil if the list lacks it.
func page[T any](x *Tx, list, bucket string, prefix []byte, reverse bool, limit int, cursor string, item func(k, v []byte) (*T, error)) ([]T, string, error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	var from []byte
	if cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(cursor)
		at, ok := strings.CutPrefix(string(b), list+"\x00")
		if err != nil || !ok || !strings.HasPrefix(at, string(prefix)) {
			return nil, "", fmt.Errorf("%w: cursor %q is not of this list: use the one that came with the page before, or none", model.ErrInvalid, cursor)
		}
		from = []byte(at)
	}
	out, next := []T{}, ""
	var last []byte
	var failed error
	x.t.scan(bucket, prefix, from, reverse, func(k, v []byte) bool {
		if string(k) == string(from) {
			return true // the last one of the page before
		}
		var t *T
		if t, failed = item(k, v); failed != nil || t == nil {
			return failed == nil
		}
		if len(out) == limit {
			next = base64.RawURLEncoding.EncodeToString(append([]byte(list+"\x00"), last...))
			return false
		}
		out, last = append(out, *t), append(last[:0], k...)
		return true
	})
	if failed != nil {
		return nil, "", failed
	}
	return out, next, nil
}

// PutCampaign stores a campaign under its ID.
func (x *Tx) PutCampaign(c model.Campaign) error {
	if err := checkID("campaign", c.ID); err != nil {
		return err
	}
	if old, err := x.GetCampaign(c.ID); err == nil && !old.Created.Equal(c.Created) {
		if err := x.t.delete(bucketCampaignTime, key(old.Created, c.ID)); err != nil {
			return err
		}
	}
	if err := x.t.put(bucketCampaignTime, key(c.Created, c.ID), []byte{}); err != nil {
		return err
	}
	return x.put(bucketCampaigns, key(c.ID), c)
}

// GetCampaign fails with model.ErrNotFound.
func (x *Tx) GetCampaign(id string) (model.Campaign, error) {
	return get[model.Campaign](x, bucketCampaigns, "campaign", id)
}

// ListCampaigns lists the newest first. cursor is "" or what the page before
// returned; "" is returned with the last page. A limit of 0 means
// DefaultLimit.
func (x *Tx) ListCampaigns(f model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	return page(x, "campaigns", bucketCampaignTime, nil, true, limit, cursor, func(k, _ []byte) (*model.Campaign, error) {
		c, err := x.GetCampaign(lastField(k, 8))
		if err != nil || !f.Takes(&c) {
			return nil, err
		}
		return &c, nil
	})
}

// StartRun marks a run as begun. PutRun of the same run takes the mark away.
func (x *Tx) StartRun(m model.RunMeta) error {
	if err := checkID("run", m.Run); err != nil {
		return err
	}
	return x.put(bucketStarted, key(m.Run), m)
}

// UnfinishedRuns lists the runs that were started and have no summary, by id.
// After a crash these are the ones to be marked unknown.
func (x *Tx) UnfinishedRuns() ([]model.RunMeta, error) {
	return all[model.RunMeta](x, bucketStarted, nil)
}

// all decodes the values of a bucket whose keys begin with prefix, in order.
func all[T any](x *Tx, bucket string, prefix []byte) ([]T, error) {
	out := []T{}
	var failed error
	x.t.scan(bucket, prefix, nil, false, func(_, v []byte) bool {
		var t T
		if t, failed = decode[T](v); failed == nil {
			out = append(out, t)
		}
		return failed == nil
	})
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// AppendInput appends inputs of the explorer to a campaign's log. Each must
// be one JSON value.
func (x *Tx) AppendInput(campaign string, inputs ...json.RawMessage) error {
	if err := checkID("campaign", campaign); err != nil {
		return err
	}
	prefix, next := key(campaign), uint64(1)
	x.t.scan(bucketInputs, prefix, nil, true, func(k, _ []byte) bool {
		next = binary.BigEndian.Uint64(k[len(prefix):]) + 1
		return false
	})
	for i, in := range inputs {
		if !json.Valid(in) {
			return fmt.Errorf("store: %w: explorer input %d of campaign %s is no JSON", model.ErrInvalid, i+1, campaign)
		}
		if err := x.put(bucketInputs, key(campaign, next+uint64(i)), in); err != nil {
			return err
		}
	}
	return nil
}

// Inputs returns a campaign's log in order of appending.
func (x *Tx) Inputs(campaign string) ([]json.RawMessage, error) {
	return all[json.RawMessage](x, bucketInputs, key(campaign))
}
