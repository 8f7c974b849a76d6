package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// StorageService is the MBean of a node's place in the ring
// (org.apache.cassandra.service.StorageServiceMBean, since 0.7).
const StorageService = "org.apache.cassandra.db:type=StorageService"

// ErrNode is an exception that the node answered with.
var ErrNode = errors.New("node-error")

// Jolokia asks the agent in a node's JVM: JMX over HTTP on the loopback
// interface, which nodetool asks for in a JVM of its own.
type Jolokia struct {
	Base string // such as http://127.0.0.1:8778/jolokia
	http http.Client
}

// Get sends one GET request (Jolokia, Protocol, "GET requests"): the path
// behind the base, such as read/MBEAN/ATTRIBUTE. The value of the answer goes
// to into, if that is not nil. An exception of the node is ErrNode.
func (j *Jolokia) Get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Base+"/"+path, nil)
	if err != nil {
		return err
	}
	res, err := j.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return err
	}
	var answer struct {
		Status int
		Value  json.RawMessage
		Error  string
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("the answer of Jolokia at %s is no JSON: %w", j.Base, err)
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%w: %s", ErrNode, strings.ReplaceAll(answer.Error, "\n", " "))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, into)
}

// Read reads attributes of StorageService, separated by commas.
func (j *Jolokia) Read(ctx context.Context, attributes string, into any) error {
	return j.Get(ctx, "read/"+StorageService+"/"+attributes, into)
}
