package api

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gorilla/mux"

	"netsplit/api/trust"
	"netsplit/api/wire"
)

type trustKey struct{}

// trusted reports whether the request showed a credential.
func trusted(ctx context.Context) bool { return ctx.Value(trustKey{}) != nil }

// mayPrune refuses a starter's policies in Starlark: nothing bounds the memory that one takes,
// and a campaign takes it again after a restart.
func mayPrune(ctx context.Context, p *wire.PolicyFile) error {
	if ctx.Value(trustKey{}) == starter && p != nil && (len(p.Files) > 0 || path.Ext(p.Name) == ".star") {
		return newProblem(http.StatusForbidden, "A page may send named policies, not programs in Starlark. Use the command line as the daemon's own user, or the full token (serve --token-file).")
	}
	return nil
}

// Paths of probes, which need no credential; without one they say yes or no alone.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
	alivePath  = "/livez"
)

func isProbe(path string) bool {
	return path == healthPath || path == readyPath || path == alivePath
}

// guard lets a request through to the routes, or refuses it.
//
// A web page that somebody has open in a browser on this machine must not
// drive netsplit. http.CrossOriginProtection refuses writes that come from
// other sites, but a page whose name was rebound to this address (DNS
// rebinding) is same-origin to the browser; it still carries its own name as
// Host, so names are checked against a list. IP addresses are not: a page
// served from this very address and port is ours.
func (s *server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "The request comes from a page of another site. Use the command line, or netsplit's own page.")
	}))
	inner := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if !s.hostAllowed(r.Host) {
			writeProblem(w, http.StatusMisdirectedRequest, fmt.Sprintf("Host %q is not served: use an IP address or localhost, or start the daemon with --allowed-host.", r.Host))
			return
		}
		if r.URL.Path == enterPath {
			s.enter(w, r)
			return
		}
		switch may := s.Access.of(r); {
		case may == stranger:
			writeProblem(w, http.StatusForbidden, "This socket is for the daemon's own user and root. Other users send a token to the daemon's address.")
			return
		case may == nobody && !isProbe(r.URL.Path):
			s.unauthorized(w, "Credentials are missing or wrong. Commands of the daemon's own user and of root need none; others send a token as Authorization: Bearer …, "+
				"which the command line reads from --api-token-file or "+trust.TokenEnv+". For a browser, netsplit access page prints an address.")
			return
		case may == reader && !reads(r):
			writeProblem(w, http.StatusForbidden, "This credential is read-only. Use the command line as the daemon's own user, or the full token (serve --token-file).")
			return
		case may == operator && !reads(r) && !operates(r):
			writeProblem(w, http.StatusForbidden, "This page may only pause, resume and cancel campaigns, heal, and write notes. To start campaigns, open the address of netsplit access page --start; for the rest, use the command line as the daemon's own user, or the full token (serve --token-file).")
			return
		case may == starter && !reads(r) && !operates(r) && !starts(r):
			writeProblem(w, http.StatusForbidden, "A page may start, schedule, pause, resume and cancel campaigns, try named policies, heal, and write notes, and nothing else. Use the command line as the daemon's own user, or the full token (serve --token-file).")
			return
		case may != nobody:
			r = r.WithContext(context.WithValue(r.Context(), trustKey{}, may))
		}
		inner.ServeHTTP(w, r)
	})
}

// queryPath is asked with POST where a query is too long for an address.
var queryPath = regexp.MustCompile(`^/v1/runs/[a-z0-9-]+/query$`)

// reads says whether a request only reads.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && queryPath.MatchString(r.URL.Path)
}

// operated are the requests, beside those that read, that an operator may send: they start
// nothing that the owner had not started.
var operated = regexp.MustCompile(`^(POST /v1/campaigns/[a-z0-9-]+/(pause|resume)|DELETE /v1/campaigns/[a-z0-9-]+|DELETE /v1/partitions/[a-z0-9-]+|PUT /v1/finding-histories/[a-z0-9-]+/note|POST /v1/reset)$`)

func operates(r *http.Request) bool { return operated.MatchString(r.Method + " " + r.URL.Path) }

// started are those that a starter may send as well. They name targets that the daemon has,
// and cannot bring one along: uploading is the owner's.
var started = regexp.MustCompile(`^(POST /v1/campaigns|POST /v1/campaigns/[a-z0-9-]+/points|(PUT|DELETE) /v1/schedules/[a-z0-9-]+)$`)

func starts(r *http.Request) bool { return started.MatchString(r.Method + " " + r.URL.Path) }

func (s *server) unauthorized(w http.ResponseWriter, detail string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="netsplit"`)
	writeProblem(w, http.StatusUnauthorized, detail)
}

// recoverPanics answers with a problem if a handler panics before it began to answer. It
// logs where the handler panicked.
func (s *server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := &begunWriter{ResponseWriter: w}
		defer func() {
			p := recover()
			switch p {
			case nil:
				return
			case http.ErrAbortHandler:
				panic(p)
			}
			s.Log.Error("internal error of netsplit", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			if begun.yes {
				panic(http.ErrAbortHandler) // or half an answer would pass for a whole one
			}
			writeProblem(w, http.StatusInternalServerError, fmt.Sprintf("Internal error of netsplit: %v. The daemon goes on; its log has the details. Please report it.", p))
		}()
		next.ServeHTTP(begun, r)
	})
}

// begunWriter knows whether anything was answered.
type begunWriter struct {
	http.ResponseWriter
	yes bool
}

func (b *begunWriter) WriteHeader(status int) {
	b.yes = true
	b.ResponseWriter.WriteHeader(status)
}

func (b *begunWriter) Write(p []byte) (int, error) {
	b.yes = true
	return b.ResponseWriter.Write(p)
}

func (b *begunWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (s *server) hostAllowed(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.AllowedHosts, func(a string) bool { return strings.EqualFold(a, host) })
}

// headAsGet answers HEAD wherever GET is answered; net/http leaves the body
// out.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			if r.URL.Path == eventsPath {
				w.Header().Set("Content-Type", "text/event-stream")
				return // a stream has no end to measure
			}
			r = r.WithContext(r.Context())
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// strictParams refuses parameters that are given twice or empty: huma would
// take the first and take empty for absent, and the user would not get what
// he asked for.
func (s *server) strictParams(ctx huma.Context, next func(huma.Context)) {
	var wrong []error
	u := ctx.URL()
	query := u.Query()
	for _, k := range slices.Sorted(maps.Keys(query)) {
		if v := query[k]; len(v) != 1 || v[0] == "" {
			wrong = append(wrong, &huma.ErrorDetail{Location: "query." + k, Message: "give it once and with a value, or leave it out"})
		}
	}
	ctx.EachHeader(func(k, v string) {
		if (k == "Idempotency-Key" || k == "Last-Event-Id" || k == "If-Match") && v == "" {
			wrong = append(wrong, &huma.ErrorDetail{Location: "header." + k, Message: "give it a value, or leave it out"})
		}
	})
	if len(wrong) > 0 {
		_ = huma.WriteErr(s.api, ctx, http.StatusUnprocessableEntity, "validation failed", wrong...) // fails only if the client is gone
		return
	}
	next(ctx)
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, http.StatusNotFound, fmt.Sprintf("There is nothing at %q: /v1/openapi.json lists what there is.", r.URL.Path))
}

func (s *server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		try := r.Clone(r.Context())
		try.Method = m
		var match mux.RouteMatch
		if s.router.Match(try, &match) && match.MatchErr == nil {
			allow = append(allow, m)
			if m == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	writeProblem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s has no %s: it has %s.", r.URL.Path, r.Method, strings.Join(allow, ", ")))
}
