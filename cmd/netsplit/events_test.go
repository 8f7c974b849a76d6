package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestEventsGoOnWhereTheyBroke: each is printed once, over broken connections and a daemon that
// is away meanwhile; a daemon that refuses ends it.
func TestEventsGoOnWhereTheyBroke(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	address := listening(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.RawQuery)
		event := func(num int) {
			fmt.Fprintf(w, "id: %d\nevent: run\ndata: {\"num\":%d,\"at\":\"2026-11-21T12:00:00Z\",\"kind\":\"run\",\"id\":\"r%d\",\"state\":\"pass\",\"text\":\"all\\nheld\"}\n\n", num, num, num)
		}
		switch len(asked) {
		case 1, 2:
			w.Header().Set("Content-Type", "text/event-stream") // and no event
		case 3:
			w.WriteHeader(http.StatusBadGateway) // of a proxy
		case 4:
			event(7)
			event(8)
		case 5:
			event(9)
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"status":403,"detail":"the token is void"}`)
		}
	})
	code, out, errs := cli(t, "events", "--api", address)
	if want := []string{"new=true", "new=true", "new=true", "new=true", "after=8", "after=9"}; strings.Join(asked, " ") != strings.Join(want, " ") {
		t.Errorf("asked %q, want %q", asked, want)
	}
	at := localTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	if want := fmt.Sprintf("7  %[1]s  run r7 pass: all; held\n8  %[1]s  run r8 pass: all; held\n9  %[1]s  run r9 pass: all; held\n", at); code != exitFailed || out != want {
		t.Errorf("status %d: %q, want %q", code, out, want)
	}
	if lines := strings.Split(errs, "\n"); len(lines) != 5 || !strings.Contains(lines[0], "trying to go on without what happens meanwhile: none was printed yet") ||
		!strings.Contains(lines[1], "on after event 8") || !strings.Contains(lines[2], "on after event 9") || lines[3] != "netsplit: the token is void" {
		t.Errorf("%s", errs)
	}
}

// TestEventsThatCannotBeRead end the command: asking again would bring the same.
func TestEventsThatCannotBeRead(t *testing.T) {
	for name, data := range map[string]string{"no JSON": "{", "another type": `{"num":"one"}`, "too long": `{"text":"` + strings.Repeat("x", 2<<20) + `"}`} {
		asked := 0
		address := listening(t, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			fmt.Fprintf(w, "data: %s\n\n", data)
		})
		if code, _, errs := cli(t, "events", "--api", address); code != exitFailed || asked != 1 || !strings.Contains(errs, "cannot be read") {
			t.Errorf("%s: status %d, asked %d times: %s", name, code, asked, errs)
		}
	}
}

// TestEventsAsLines begin where the user says, and end with the command.
func TestEventsAsLines(t *testing.T) {
	query := ""
	ctx, cancel := context.WithCancel(t.Context())
	address := listening(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		fmt.Fprint(w, "data: {\"num\":1,\"at\":\"2026-11-21T12:00:00Z\",\"kind\":\"events\",\"id\":\"\",\"state\":\"missed\",\"text\":\"x\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	var out, errs bytes.Buffer
	code := run(ctx, []string{"events", "--after", "0", "-o", "jsonl", "--api", address}, nil, writerFunc(func(b []byte) (int, error) { defer cancel(); return out.Write(b) }), &errs)
	if want := "{\"num\":1,\"at\":\"2026-11-21T12:00:00Z\",\"kind\":\"events\",\"id\":\"\",\"state\":\"missed\",\"text\":\"x\"}\n"; code != exitInterrupted || query != "after=0" || out.String() != want {
		t.Errorf("status %d, asked %s: %s%s", code, query, &out, &errs)
	}
	if code, _, errs := cli(t, "events", "-o", "json", "--api", address); code != exitUsage || !strings.Contains(errs, "use -o jsonl") {
		t.Errorf("status %d: %s", code, errs)
	}
	if code, _, errs := cli(t, "events", "--api", "127.0.0.1:1"); code != exitFailed || !strings.Contains(errs, "no netsplit daemon") {
		t.Errorf("status %d: %s", code, errs)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
