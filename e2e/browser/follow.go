package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Follow opens a page and clicks, as a user does, at the first element of each selector once it
// is there, on whatever page that led to. It does not click at that of the last selector, and
// gives the elements of the page that has it. It runs no script of its own.
func Follow(tb testing.TB, url string, selectors ...string) (dom string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	patience := time.Now().Add(50 * time.Second)
	p := pilot(ctx, tb)
	p.visit(url)
	for i, selector := range selectors {
		for {
			var err error
			if i == len(selectors)-1 {
				dom, err = p.html(selector)
			} else {
				err = p.click(selector)
			}
			if err == nil {
				break
			}
			if time.Now().After(patience) {
				page, _ := p.html("html")
				tb.Fatalf("%s: %s did not appear: %v\n%s", url, selector, err, page)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return dom
}

// piloted is a browser that is told what to do by the Chrome DevTools Protocol, over a pipe.
type piloted struct {
	tb      testing.TB
	in      *os.File
	out     *bufio.Reader
	session string
	last    int

	answer, dialog string // to the next dialog, "" dismisses it; what the last one said
}

// visit opens a page and speaks with it from now on.
func (p *piloted) visit(url string) {
	p.tb.Helper()
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	p.must("Target.createTarget", map[string]any{"url": url}, &target)
	p.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
}

func pilot(ctx context.Context, tb testing.TB) *piloted {
	tb.Helper()
	browser := chromium(tb)
	profile, err := os.MkdirTemp("", "netsplit-browser-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(profile) }) // a helper process may still write there
	theirs, in, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, browser, append(flags(profile), "--remote-debugging-pipe")...)
	cmd.ExtraFiles = []*os.File{theirs, answers} // 3 and 4
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	theirs.Close()
	answers.Close()
	tb.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		out.Close()
	})
	return &piloted{tb: tb, in: in, out: bufio.NewReader(out)}
}

// send sends a command.
func (p *piloted) send(method string, params map[string]any) error {
	p.last++
	m := map[string]any{"id": p.last, "method": method, "params": params}
	if p.session != "" {
		m["sessionId"] = p.session
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = p.in.Write(append(b, 0))
	return err
}

// ask sends a command and decodes its result. It answers the dialogs that open meanwhile.
func (p *piloted) ask(method string, params map[string]any, result any) error {
	if err := p.send(method, params); err != nil {
		return err
	}
	asked := p.last
	for {
		b, err := p.out.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("the browser ended: %w", err)
		}
		var answer struct {
			ID     int
			Method string
			Params struct{ Message string }
			Error  *struct{ Message string }
			Result json.RawMessage
		}
		if err := json.Unmarshal(bytes.TrimSuffix(b, []byte{0}), &answer); err != nil {
			return err
		}
		switch {
		case answer.Method == "Page.javascriptDialogOpening":
			p.dialog = answer.Params.Message
			if err := p.send("Page.handleJavaScriptDialog", map[string]any{"accept": p.answer != "", "promptText": p.answer}); err != nil {
				return err
			}
			continue
		case answer.ID != asked: // an event, or the answer to a dialog
			continue
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result != nil:
			return json.Unmarshal(answer.Result, result)
		}
		return nil
	}
}

func (p *piloted) must(method string, params map[string]any, result any) {
	p.tb.Helper()
	if err := p.ask(method, params, result); err != nil {
		p.tb.Fatal(err)
	}
}

// find is the document and the first element of a selector.
func (p *piloted) find(selector string) (document, element int, err error) {
	var root struct{ Root struct{ NodeID int } }
	if err := p.ask("DOM.getDocument", map[string]any{"depth": 0}, &root); err != nil {
		return 0, 0, err
	}
	var found struct{ NodeID int }
	err = p.ask("DOM.querySelector", map[string]any{"nodeId": root.Root.NodeID, "selector": selector}, &found)
	if err == nil && found.NodeID == 0 {
		err = fmt.Errorf("the page has no %s", selector)
	}
	return root.Root.NodeID, found.NodeID, err
}

func (p *piloted) html(selector string) (string, error) {
	document, _, err := p.find(selector)
	var out struct{ OuterHTML string }
	if err == nil {
		err = p.ask("DOM.getOuterHTML", map[string]any{"nodeId": document}, &out)
	}
	return out.OuterHTML, err
}

func (p *piloted) click(selector string) error {
	_, element, err := p.find(selector)
	if err != nil {
		return err
	}
	if err := p.ask("DOM.scrollIntoViewIfNeeded", map[string]any{"nodeId": element}, nil); err != nil {
		return err
	}
	var shape struct{ Quads [][]float64 } // x and y of each corner
	if err := p.ask("DOM.getContentQuads", map[string]any{"nodeId": element}, &shape); err != nil {
		return err
	}
	if len(shape.Quads) == 0 || len(shape.Quads[0]) != 8 {
		return fmt.Errorf("%s is not shown", selector)
	}
	q := shape.Quads[0]
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		if err := p.ask("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": (q[0] + q[4]) / 2, "y": (q[1] + q[5]) / 2, "button": "left", "clickCount": 1}, nil); err != nil {
			return err
		}
	}
	return nil
}
