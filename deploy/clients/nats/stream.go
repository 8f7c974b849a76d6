package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"netsplit/deploy/clients/workload"
	"netsplit/model"
)

// Name and subjects of the target's configuration (target.yaml).
const (
	streamName  = "work"
	subjectRoot = "work."
	operator    = "operator" // name and password of who may operate servers
)

// Ports of the target's configuration; a variable, since a test needs some that
// nobody listens on.
var clientPort, statusPort = 4222, 8222

// errConnect: there is no connection, so nothing was asked.
var errConnect = errors.New("connect")

// dial connects to one server and stays with it: who is asked is who was meant.
// A connection that breaks is gone.
func dial(n workload.Node, timeout time.Duration, more ...nats.Option) (*nats.Conn, nats.JetStreamContext, error) {
	opts := append(more, nats.NoReconnect(), nats.IgnoreDiscoveredServers(), nats.Timeout(timeout))
	nc, err := nats.Connect(fmt.Sprintf("nats://%s:%d", n.IP, clientPort), opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w %s: %w", errConnect, n.Name, err)
	}
	js, err := nc.JetStream(nats.MaxWait(timeout))
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

// firstMessage is in the stream before the workload begins, acknowledged: what becomes of it says
// what became of a stream that took no other message.
const firstMessage = "first"

// createStream makes the stream through the first server that takes it, and publishes
// firstMessage.
func createStream(ctx context.Context, c *common, replicas int) error {
	if replicas < 1 || replicas > 5 {
		return fmt.Errorf("--replicas %d: JetStream has 1 to 5", replicas)
	}
	for i := 0; ; i++ {
		err := func() error {
			nc, js, err := dial(c.nodes[i%len(c.nodes)], c.tmo)
			if err != nil {
				return err
			}
			defer nc.Close()
			_, err = js.AddStream(&nats.StreamConfig{Name: streamName, Subjects: []string{subjectRoot + ">"}, Replicas: replicas, Storage: nats.FileStorage, AllowDirect: true}, nats.Context(ctx))
			if err != nil {
				return err
			}
			try, cancel := context.WithTimeout(ctx, 2*c.tmo)
			defer cancel()
			// An acknowledgement may be lost: the server knows the message by its id then.
			ack, err := js.Publish(subjectRoot+firstMessage, []byte(firstMessage), nats.MsgId(firstMessage), nats.Context(try))
			if err == nil && ack.Sequence != 1 {
				return fmt.Errorf("the stream's first message has number %d", ack.Sequence)
			}
			return err
		}()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("make stream %s: %w", streamName, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// peers are the servers that hold the stream, sorted.
func peers(info *nats.StreamInfo) []model.NodeID {
	var out []model.NodeID
	if info.Cluster == nil {
		return nil
	}
	if info.Cluster.Leader != "" {
		out = append(out, model.NodeID(info.Cluster.Leader))
	}
	for _, p := range info.Cluster.Replicas {
		if !slices.Contains(out, model.NodeID(p.Name)) {
			out = append(out, model.NodeID(p.Name))
		}
	}
	slices.Sort(out)
	return out
}

// failure says whether an error means that the operation did not happen (fail)
// or that nobody knows (info), and gives it a stable first word.
func failure(err error) (model.OpType, string) {
	var api *nats.APIError
	switch {
	case errors.Is(err, errConnect):
		return model.OpFail, err.Error()
	case errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrNoStreamResponse):
		// The server that was asked has nobody to hand it to.
		return model.OpFail, "no-responders " + err.Error()
	case errors.As(err, &api) && api.Code < 500:
		return model.OpFail, fmt.Sprintf("refused %d %s", api.Code, api.Description)
	case errors.As(err, &api):
		// A server that gives up may have handed it to others before.
		return model.OpInfo, fmt.Sprintf("unavailable %d %s", api.Code, api.Description)
	case errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded):
		return model.OpInfo, "timeout " + err.Error()
	case errors.Is(err, context.Canceled):
		return model.OpInfo, "stopped " + err.Error()
	}
	return model.OpInfo, "closed " + err.Error()
}
