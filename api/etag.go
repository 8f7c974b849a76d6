package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// tagged are the answers that have an ETag: one thing each.
var tagged = regexp.MustCompile(`^/v1/(campaigns|runs|findings|finding-histories|invariants|schedules|partitions|targets)/[^/]+$`)

// guarded are what of them a client may replace or delete if they are still what it saw
// (RFC 9110, section 13.1.1).
var guarded = regexp.MustCompile(`^/v1/((invariants|schedules|targets)/[^/]+|finding-histories/[^/]+/note)$`)

// etag is the strong validator of an answer.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// names says whether a header names a tag, or any with *. weak compares as If-None-Match
// does (RFC 9110, section 8.8.3.2).
func names(header []string, tag string, weak bool) bool {
	for _, t := range strings.Split(strings.Join(header, ","), ",") {
		if t = strings.TrimSpace(t); weak {
			t = strings.TrimPrefix(t, "W/")
		}
		if t == tag || t == "*" {
			return true
		}
	}
	return false
}

// conditional answers 304 to those who have an answer already.
func (s *server) conditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !tagged.MatchString(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		got := record(next, r)
		if got.status == http.StatusOK {
			tag := etag(got.body.Bytes())
			got.header.Set("ETag", tag)
			if have := r.Header.Values("If-None-Match"); len(have) > 0 && names(have, tag, true) {
				got.status = http.StatusNotModified
				got.header.Del("Content-Type")
				got.body.Reset()
			}
		}
		got.send(w)
	})
}

// IfMatch is what a client saw of what it changes.
type IfMatch struct {
	IfMatch string `header:"If-Match" minLength:"1" maxLength:"1000" doc:"ETag of the answer that you saw: 412 if it has changed since, or * if it must exist"`
}

// unchanged refuses with 412 to change what is no longer what a client saw. present answers a GET
// of it. The caller holds changing until the change is made (RFC 9110, section 13.2.1: after all
// other checks of the request).
func unchanged[T any](s *server, in IfMatch, present func() (*body[T], error)) error {
	if in.IfMatch == "" {
		return nil
	}
	var b bytes.Buffer
	now, err := present()
	if err == nil {
		err = s.api.Marshal(&b, "application/json", now.Body)
	}
	if err != nil || !names([]string{in.IfMatch}, etag(b.Bytes()), false) {
		return newProblem(http.StatusPreconditionFailed, "It is not, or no longer, what If-Match says: get it again, and repeat your change.")
	}
	return nil
}

// answer is a response that is not sent yet. It implements http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func record(h http.Handler, r *http.Request) *answer {
	a := &answer{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(a, r)
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // a client that is gone
}

// describeTags says in the contract which answers have ETags.
func describeTags(api *huma.OpenAPI) {
	header := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	for path, item := range api.Paths {
		if get := item.Get; get != nil && tagged.MatchString(path) {
			ok := *get.Responses["200"]
			ok.Headers = maps.Clone(ok.Headers)
			if ok.Headers == nil {
				ok.Headers = map[string]*huma.Param{}
			}
			ok.Headers["ETag"] = &huma.Param{Description: "Changes when the answer does", Schema: &huma.Schema{Type: huma.TypeString}}
			get.Responses["200"] = &ok
			get.Responses["304"] = &huma.Response{Description: "Not modified: it is what If-None-Match says"}
			get.Parameters = append(get.Parameters, header("If-None-Match", "ETag of the answer that you have: 304 if it has not changed"))
		}
		for _, op := range []*huma.Operation{item.Put, item.Delete} {
			if op == nil || !guarded.MatchString(path) {
				continue
			}
			problem := *op.Responses["default"]
			problem.Description = "Precondition failed: it is not, or no longer, what If-Match says"
			op.Responses["412"] = &problem
		}
	}
}
