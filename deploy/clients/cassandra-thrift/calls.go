package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"netsplit/model"
)

// Consistency levels (cassandra.thrift, ConsistencyLevel).
const (
	one    int32 = 1
	quorum int32 = 2
)

// client is one connection to one node: framed binary Thrift, which is the
// default from 0.7 on.
type client struct {
	sock  *thrift.TSocket
	calls *thrift.TStandardClient
}

func dial(addr string, timeout time.Duration) (*client, error) {
	conf := &thrift.TConfiguration{ConnectTimeout: 3 * time.Second, SocketTimeout: timeout}
	sock := thrift.NewTSocketConf(addr, conf)
	if err := sock.Open(); err != nil {
		return nil, err
	}
	p := thrift.NewTBinaryProtocolConf(thrift.NewTFramedTransportConf(sock, conf), conf)
	return &client{sock, thrift.NewTStandardClient(p, p)}, nil
}

// exception is one that the interface declares.
type exception struct{ name, why string }

func (e *exception) Error() string {
	if e.why == "" {
		return e.name
	}
	return e.name + " " + e.why
}

// call makes one call. The result is field 0; the names are those of the
// declared exceptions, in the order of their ids, which begin with 1.
func (c *client) call(ctx context.Context, method string, args structure, exceptions ...string) (any, error) {
	var a answer
	if _, err := c.calls.Call(ctx, method, args, &a); err != nil {
		return nil, err
	}
	for i, name := range exceptions {
		if e, ok := a.fields[int16(i+1)].(object); ok {
			return nil, &exception{name, strings.ReplaceAll(e.text(1), "\n", " ")}
		}
	}
	return a.fields[0], nil
}

// The declared exceptions of most calls, as words of the history.
const (
	invalid     = "invalid"
	unavailable = "unavailable"
	timedOut    = "timed-out"
	disagree    = "schema-disagreement"
)

func (c *client) setKeyspace(ctx context.Context, ks string) error {
	_, err := c.call(ctx, "set_keyspace", structure{{1, ks}}, invalid)
	return err
}

// addKeyspace makes a keyspace with one column family. replication_factor is
// a field of the keyspace in 0.7 and an option of the strategy from 0.8 on.
func (c *client) addKeyspace(ctx context.Context, release, ks, cf string, rf int) error {
	def := structure{{1, ks}, {2, "org.apache.cassandra.locator.SimpleStrategy"}}
	if strings.HasPrefix(release, "0.7.") {
		def = append(def, field{4, int32(rf)})
	} else {
		def = append(def, field{3, map[string]string{"replication_factor": fmt.Sprint(rf)}})
	}
	def = append(def, field{5, []structure{family(ks, cf)}})
	_, err := c.call(ctx, "system_add_keyspace", structure{{1, def}}, invalid, disagree)
	return err
}

func family(ks, cf string) structure {
	return structure{{1, ks}, {2, cf}, {3, "Standard"}, {5, "BytesType"}}
}

func (c *client) addFamily(ctx context.Context, ks, cf string) error {
	_, err := c.call(ctx, "system_add_column_family", structure{{1, family(ks, cf)}}, invalid, disagree)
	return err
}

func (c *client) dropFamily(ctx context.Context, cf string) error {
	_, err := c.call(ctx, "system_drop_column_family", structure{{1, cf}}, invalid, disagree)
	return err
}

// Every row has one column of this name.
const column = "value"

func (c *client) insert(ctx context.Context, cf, key, value string, level int32) error {
	col := structure{{1, []byte(column)}, {2, []byte(value)}, {3, time.Now().UnixMicro()}}
	_, err := c.call(ctx, "insert", structure{{1, []byte(key)}, {2, structure{{3, cf}}}, {3, col}, {4, level}}, invalid, unavailable, timedOut)
	return err
}

// get returns "" if there is no such row.
func (c *client) get(ctx context.Context, cf, key string, level int32) (string, error) {
	path := structure{{3, cf}, {5, []byte(column)}}
	const notFound = "not-found"
	r, err := c.call(ctx, "get", structure{{1, []byte(key)}, {2, path}, {3, level}}, invalid, notFound, unavailable, timedOut)
	var e *exception
	if errors.As(err, &e) && e.name == notFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return valueOf(r), nil
}

// valueOf reads a ColumnOrSuperColumn.
func valueOf(v any) string {
	cosc, _ := v.(object)
	col, _ := cosc[1].(object)
	return col.text(2)
}

// page is how many rows one call asks for.
const page = 500

// rows lists a whole column family, page after page: a page begins with the
// last key of the one before (get_range_slices, KeyRange).
func (c *client) rows(ctx context.Context, cf string, level int32) ([][2]string, error) {
	var out [][2]string
	pred := structure{{2, structure{{1, []byte{}}, {2, []byte{}}, {3, false}, {4, int32(1)}}}}
	for start, last := "", ""; ; start = last {
		r, err := c.call(ctx, "get_range_slices", structure{{1, structure{{3, cf}}}, {2, pred},
			{3, structure{{1, []byte(start)}, {2, []byte{}}, {5, int32(page)}}}, {4, level}}, invalid, unavailable, timedOut)
		if err != nil {
			return nil, err
		}
		list, _ := r.([]any)
		for _, e := range list {
			row, _ := e.(object)
			key := row.text(1)
			if cols := row.list(2); len(cols) > 0 && (start == "" || key != start) {
				out = append(out, [2]string{key, valueOf(cols[0])})
			}
			last = key
		}
		if len(list) < page {
			return out, nil
		}
	}
}

// unreachable is the entry of describe_schema_versions for nodes that did not
// answer (StorageProxy.UNREACHABLE).
const unreachable = "UNREACHABLE"

func (c *client) versions(ctx context.Context) (map[string]any, error) {
	r, err := c.call(ctx, "describe_schema_versions", nil, invalid)
	if err != nil {
		return nil, err
	}
	m, ok := r.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("describe_schema_versions answered %v", r)
	}
	return m, nil
}

func (c *client) ring(ctx context.Context, ks string) ([]string, error) {
	r, err := c.call(ctx, "describe_ring", structure{{1, ks}}, invalid)
	if err != nil {
		return nil, err
	}
	list, _ := r.([]any)
	var out []string
	for _, e := range list {
		tr, _ := e.(object)
		for _, a := range tr.list(3) {
			out = append(out, fmt.Sprint(a))
		}
	}
	return out, nil
}

func (c *client) families(ctx context.Context, ks string) ([]string, error) {
	const notFound = "not-found"
	r, err := c.call(ctx, "describe_keyspace", structure{{1, ks}}, notFound, invalid)
	if err != nil {
		return nil, err
	}
	def, _ := r.(object)
	var out []string
	for _, e := range def.list(5) {
		cf, _ := e.(object)
		out = append(out, cf.text(2))
	}
	return out, nil
}

// errDisagree: nodes have different schema versions, or cannot be asked.
var errDisagree = errors.New(disagree)

// failure says whether an error means that the operation did not happen
// (fail) or that nobody knows (info), gives it a stable first word, and says
// whether the connection can go on.
func failure(err error, writes bool) (t model.OpType, text string, broken bool) {
	maybe := model.OpFail
	if writes {
		maybe = model.OpInfo
	}
	var e *exception
	var app thrift.TApplicationException
	var op *net.OpError
	text = strings.ReplaceAll(err.Error(), "\n", " ")
	switch {
	case errors.Is(err, errDisagree):
		return model.OpFail, text, false
	case errors.As(err, &e):
		if e.name == timedOut {
			return maybe, text, false
		}
		return model.OpFail, text, false
	case errors.As(err, &app):
		return maybe, "server-error " + text, true
	case errors.As(err, &op) && op.Op == "dial":
		return model.OpFail, "connect " + text, true
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return maybe, "timeout " + text, true
	case errors.Is(err, io.EOF):
		return maybe, "closed " + text, true
	}
	return maybe, "error " + text, true
}

func isTimeout(err error) bool {
	var ne net.Error
	var te thrift.TTransportException
	return errors.As(err, &ne) && ne.Timeout() || errors.As(err, &te) && te.TypeId() == thrift.TIMED_OUT
}
