package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Ports of the web services: yarn.resourcemanager.webapp.address and
// yarn.nodemanager.webapp.address.
const (
	rmPort = "8088"
	nmPort = "8042"
)

// web asks the REST services of ResourceManager and NodeManagers (Hadoop
// documentation, "ResourceManager REST API's" and "NodeManager REST API's").
type web struct {
	rms  []string
	http http.Client
}

func newWeb(rms []string) *web {
	return &web{rms: rms, http: http.Client{Timeout: 3 * time.Second,
		// A standby answers with a redirection to the active one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableKeepAlives: true}}}
}

// app is what the ResourceManager says of an application.
type app struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	State       string `json:"state"` // NEW … RUNNING, FINISHED, FAILED, KILLED
	Diagnostics string `json:"diagnostics"`
	Containers  int    `json:"runningContainers"`
}

func (a app) over() bool {
	return a.State == "FINISHED" || a.State == "FAILED" || a.State == "KILLED"
}

// node is what the ResourceManager says of a NodeManager.
type node struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Host       string `json:"nodeHostName"`
	Containers int    `json:"numContainers"`
}

// held is what a NodeManager says of a container.
type held struct {
	ID    string `json:"id"`
	State string `json:"state"` // NEW, LOCALIZING, RUNNING, DONE, … of ContainerState
}

var (
	errNoActive = errors.New("no ResourceManager says that it is active")
	errNotFound = errors.New("not found")
)

// state is what a ResourceManager says of itself: ACTIVE, STANDBY, ….
func (w *web) state(ctx context.Context, rm string) (string, error) {
	var v struct {
		ClusterInfo struct {
			HAState string `json:"haState"`
		} `json:"clusterInfo"`
	}
	err := w.get(ctx, rm+":"+rmPort, "/ws/v1/cluster/info", &v)
	return v.ClusterInfo.HAState, err
}

// active returns the ResourceManager that says it is active.
func (w *web) active(ctx context.Context) (string, error) {
	var last error
	for _, rm := range w.rms {
		s, err := w.state(ctx, rm)
		if err != nil {
			last = err
		} else if s == "ACTIVE" {
			return rm, nil
		}
	}
	if last != nil {
		return "", fmt.Errorf("%w; %w", errNoActive, last)
	}
	return "", errNoActive
}

// apps lists the applications of a ResourceManager.
func (w *web) apps(ctx context.Context, rm string) ([]app, error) {
	var v struct {
		Apps struct {
			App []app `json:"app"`
		} `json:"apps"`
	}
	err := w.get(ctx, rm+":"+rmPort, "/ws/v1/cluster/apps", &v)
	return v.Apps.App, err
}

// app asks the active ResourceManager for one application.
func (w *web) app(ctx context.Context, id string) (app, error) {
	rm, err := w.active(ctx)
	if err != nil {
		return app{}, err
	}
	var v struct {
		App app `json:"app"`
	}
	err = w.get(ctx, rm+":"+rmPort, "/ws/v1/cluster/apps/"+id, &v)
	return v.App, err
}

// nodes lists the NodeManagers that a ResourceManager knows.
func (w *web) nodes(ctx context.Context, rm string) ([]node, error) {
	var v struct {
		Nodes struct {
			Node []node `json:"node"`
		} `json:"nodes"`
	}
	err := w.get(ctx, rm+":"+rmPort, "/ws/v1/cluster/nodes", &v)
	return v.Nodes.Node, err
}

func (w *web) containers(ctx context.Context, nm string) ([]held, error) {
	var v struct {
		Containers struct {
			Container []held `json:"container"`
		} `json:"containers"`
	}
	err := w.get(ctx, nm+":"+nmPort, "/ws/v1/node/containers", &v)
	return v.Containers.Container, err
}

// kill asks the ResourceManager to stop an application ("Cluster Application
// State API").
func (w *web) kill(ctx context.Context, rm, id string) error {
	url := "http://" + rm + ":" + rmPort + "/ws/v1/cluster/apps/" + id + "/state?user.name=root"
	return w.ask(ctx, http.MethodPut, url, []byte(`{"state":"KILLED"}`), nil)
}

func (w *web) get(ctx context.Context, hostport, path string, v any) error {
	return w.ask(ctx, http.MethodGet, "http://"+hostport+path, nil, v)
}

func (w *web) ask(ctx context.Context, method, url string, body []byte, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", errNotFound, url)
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s answers %s: %.200s", url, resp.Status, strings.Join(strings.Fields(string(b)), " "))
	case v == nil:
		return nil
	}
	if raw, is := v.(*json.RawMessage); is {
		*raw = b
		return nil
	}
	return decode(b, v)
}

// decode reads JSON as Jersey 1 writes it: a list that is empty is null, or
// its parent is "" (Hadoop 3.4), and one with a single element may be that
// element.
func decode(b []byte, v any) error {
	var any0 any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&any0); err != nil {
		return fmt.Errorf("answer is no JSON: %w", err)
	}
	fixed, err := json.Marshal(plain("", any0))
	if err != nil {
		return err
	}
	return json.Unmarshal(fixed, v)
}

// lists are the keys of the answers that hold a list, inside an object that
// has the plural name.
var lists = map[string]string{"apps": "app", "nodes": "node", "containers": "container"}

func plain(key string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			out[k] = plain(k, e)
		}
		if one := lists[key]; one != "" && out[one] != nil {
			if _, is := out[one].([]any); !is {
				out[one] = []any{out[one]}
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = plain("", e)
		}
		return out
	case string:
		if x == "" && lists[key] != "" {
			return map[string]any{}
		}
	}
	return v
}
