package export

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ShiViz's file: its expression and its delimiter, both left out, and then two lines for each
// event, text and "host {clock}", as its expression has it if none is given.

// self is the lane of what netsplit did. Its clock joins no other.
const self = "netsplit"

// clock is a vector clock.
type clock map[string]int

// writeShiViz gives each host a lane: messages as they left and arrived, what was done to its
// servers, and values of variables that changed. Of messages between hosts the switch saw
// only that they left it, so a message leaves when it came to the switch and arrives when the
// switch let it pass.
func writeShiViz(w io.Writer, all []happening) error {
	var steps []step
	for _, h := range all {
		text := h.text
		switch h.kind {
		case "message":
			if h.end == 0 && h.fate != "pass" {
				text += " [" + notPassed(h.fate) + "]"
			}
			id := h.n
			steps = append(steps, step{h.at, h.n, h.host, "send to " + h.peer + ": " + text, id, true})
			if h.end > 0 || h.fate == "pass" {
				steps = append(steps, step{max(h.at, h.end), h.n, h.peer, "receive from " + h.host + ": " + h.text, id, false})
			}
		case "cut":
			steps = append(steps, step{h.at, h.n, self, text, 0, false})
			if h.end > 0 {
				steps = append(steps, step{h.end, h.n, self, "heal: " + text, 0, false})
			}
		case "node", "obs":
			steps = append(steps, step{h.at, h.n, h.host, text, 0, false})
		}
	}
	slices.SortStableFunc(steps, byTime)
	if _, err := io.WriteString(w, "\n\n"); err != nil {
		return err
	}
	clocks, sent := map[string]clock{}, map[int64]clock{}
	for _, s := range steps {
		c := clocks[s.host]
		if c == nil {
			c = clock{}
			clocks[s.host] = c
		}
		if s.message != 0 && !s.send {
			for h, n := range sent[s.message] {
				c[h] = max(c[h], n)
			}
			delete(sent, s.message)
		}
		c[s.host]++
		if s.send {
			sent[s.message] = maps.Clone(c)
		}
		b, err := json.Marshal(c) // sorted by host
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n%s %s\n", s.text, s.host, b); err != nil {
			return err
		}
	}
	return nil
}

// notPassed is what became of a message that did not pass.
func notPassed(fate string) string {
	switch fate {
	case "hold":
		return "still held at the end"
	case "reset":
		return "its connection was reset"
	}
	return "dropped"
}
