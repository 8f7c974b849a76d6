package api

import (
	"net/http"
	"time"
)

// Bounds of a connection whose client is slow. Before it has shown credentials, a client must not
// keep what others need.
const (
	headerTime = 5 * time.Second
	// bodyTime is how long a body may take to arrive, if its operation has no bound of its own.
	bodyTime = 5 * time.Second
	idleTime = 2 * time.Minute
	// writeTime is how long a client may take for the next piece of an answer, streamTime for
	// the next event. A whole answer takes what it takes.
	writeTime  = time.Minute
	streamTime = 10 * time.Second
	piece      = 64 << 10 // bytes
)

// paces gives up on clients that are slow to send a body or to take an answer.
func (s *server) paces(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &paced{ResponseWriter: w, rc: http.NewResponseController(w), most: s.writeTime}
		if r.ContentLength != 0 {
			// net/http reads what a handler leaves of a body before it answers. The deadline ends
			// with the body: the handler may take longer.
			_ = p.rc.SetReadDeadline(time.Now().Add(bodyTime)) // a recorder in a test has none
		}
		p.renew()
		next.ServeHTTP(p, r)
		p.renew() // for what is buffered
	})
}

// paced renews the deadline of writes with each piece, unless the handler sets deadlines itself.
type paced struct {
	http.ResponseWriter
	rc   *http.ResponseController
	most time.Duration
	own  bool
}

func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *paced) renew() {
	if !p.own {
		_ = p.rc.SetWriteDeadline(time.Now().Add(p.most)) // a recorder in a test has none
	}
}

func (p *paced) SetWriteDeadline(at time.Time) error {
	p.own = true
	return p.rc.SetWriteDeadline(at)
}

func (p *paced) Write(b []byte) (n int, err error) {
	for err == nil {
		next := b[n:min(n+piece, len(b))]
		p.renew()
		var wrote int
		wrote, err = p.ResponseWriter.Write(next)
		if n += wrote; n == len(b) {
			break
		}
	}
	return n, err
}
