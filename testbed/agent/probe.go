package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"time"

	"netsplit/model"
	"netsplit/testbed/proc"
)

const (
	// silence ends the answer of a TCP probe that states no other end.
	silence = 20 * time.Millisecond
	// maxAnswer is the longest answer of a probe in bytes.
	maxAnswer = 1 << 20
	// defaultLimit bounds a probe that states no limit.
	defaultLimit = time.Second
)

// ask runs a probe and returns its answer. On an error the answer holds what
// had arrived by then.
func ask(ctx context.Context, p *probe) ([]byte, error) {
	limit := p.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case len(p.Command) > 0:
		text, err := proc.Output(ctx, p.Command, limit)
		return []byte(text), err
	case p.TCP != "":
		return askTCP(ctx, p, limit)
	case p.HTTP != "":
		return askHTTP(ctx, p.HTTP, limit)
	}
	return nil, errors.New("the probe has neither command, tcp nor http; set one")
}

func askTCP(ctx context.Context, p *probe, limit time.Duration) ([]byte, error) {
	var until *regexp.Regexp
	if p.Until != "" {
		var err error
		if until, err = regexp.Compile(p.Until); err != nil {
			return nil, fmt.Errorf("until: %w", err)
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.TCP)
	if err != nil {
		return nil, fmt.Errorf("tcp %s: %w", p.TCP, err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if _, err := conn.Write(p.Send); err != nil {
		return nil, fmt.Errorf("tcp %s: send: %w", p.TCP, err)
	}
	var answer []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := conn.Read(buf)
		answer = append(answer, buf[:n]...)
		switch {
		case until != nil && until.Match(answer):
			return answer, nil
		case len(answer) > maxAnswer:
			return answer[:maxAnswer], fmt.Errorf("tcp %s: the answer is longer than %d bytes", p.TCP, maxAnswer)
		case err == nil:
			if until == nil { // from the first byte on, silence ends the answer
				if quiet := time.Now().Add(silence); quiet.Before(deadline) {
					_ = conn.SetReadDeadline(quiet)
				}
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			if until == nil && len(answer) > 0 {
				return answer, nil
			}
			return answer, fmt.Errorf("tcp %s: no complete answer within %v, %d bytes so far: %q", p.TCP, limit, len(answer), model.Excerpt(string(answer)))
		case errors.Is(err, io.EOF) && until == nil:
			return answer, nil
		case errors.Is(err, io.EOF):
			return answer, fmt.Errorf("tcp %s: closed before the answer matched %q; it was %q", p.TCP, p.Until, model.Excerpt(string(answer)))
		default:
			return answer, fmt.Errorf("tcp %s: read: %w", p.TCP, err)
		}
	}
}

// web asks HTTP probes: no proxy (the address is on the host), and a new
// connection each time, so that a probe never hangs on an old one.
var web = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func askHTTP(ctx context.Context, url string, limit time.Duration) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	resp, err := web.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v", limit)
		}
		return nil, fmt.Errorf("http %s: %w", url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return body, fmt.Errorf("http %s: %w", url, err)
	case len(body) > maxAnswer:
		return body[:maxAnswer], fmt.Errorf("http %s: the answer is longer than %d bytes", url, maxAnswer)
	case resp.StatusCode/100 != 2:
		return body, fmt.Errorf("http %s: status %s: %.200q", url, resp.Status, body)
	}
	return body, nil
}
