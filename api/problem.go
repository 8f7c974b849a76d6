package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"netsplit/model"
)

// problemTypes gives each status of a problem its stable type: the last part
// of urn:netsplit:problem:… and a title that never changes.
var problemTypes = map[int][2]string{
	http.StatusBadRequest:            {"malformed", "The request cannot be read"},
	http.StatusUnauthorized:          {"unauthorized", "Credentials are needed"},
	http.StatusForbidden:             {"forbidden", "The request is refused"},
	http.StatusNotFound:              {"not-found", "There is no such thing"},
	http.StatusMethodNotAllowed:      {"method-not-allowed", "The path has no such method"},
	http.StatusNotAcceptable:         {"not-acceptable", "No such format"},
	http.StatusRequestTimeout:        {"timeout", "The request took too long to arrive"},
	http.StatusConflict:              {"conflict", "The request conflicts with the present state"},
	http.StatusPreconditionFailed:    {"changed", "It is not what you saw"},
	http.StatusRequestEntityTooLarge: {"too-large", "The request is too large"},
	http.StatusUnsupportedMediaType:  {"unsupported-media-type", "The body is not JSON"},
	http.StatusUnprocessableEntity:   {"invalid", "The request is not valid"},
	http.StatusMisdirectedRequest:    {"wrong-host", "The request names a host that is not served"},
	http.StatusInternalServerError:   {"internal", "netsplit failed"},
	http.StatusServiceUnavailable:    {"unavailable", "A required part is missing"},
	http.StatusInsufficientStorage:   {"disk-full", "The disk is full"},
}

func newProblem(status int, detail string, errs ...error) *huma.ErrorModel {
	p := &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail}
	if t, ok := problemTypes[status]; ok {
		p.Type, p.Title = "urn:netsplit:problem:"+t[0], t[1]
	}
	for _, err := range errs {
		if err != nil {
			p.Add(err)
		}
	}
	for _, e := range p.Errors {
		e.Value = nil // it may be a secret that was sent in the wrong place
	}
	return p
}

func init() {
	// huma offers these as package variables only; nothing else in the
	// program uses huma.
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		switch {
		case status == http.StatusUnprocessableEntity && detail == "validation failed":
			detail = "The request does not match the contract (/v1/openapi.json): correct what errors names."
		case status == http.StatusUnsupportedMediaType:
			detail = "Send the body as JSON, with the header Content-Type: application/json."
		case status == http.StatusRequestEntityTooLarge:
			detail += ": send a smaller one"
		}
		return newProblem(status, detail, errs...)
	}
}

// fromService gives an error of the Service its status.
func fromService(err error) error {
	for _, k := range []struct {
		kind   error
		status int
	}{
		{model.ErrNotFound, http.StatusNotFound},
		{model.ErrInvalid, http.StatusUnprocessableEntity},
		{model.ErrConflict, http.StatusConflict},
		{model.ErrFull, http.StatusInsufficientStorage},
		{model.ErrUnavailable, http.StatusServiceUnavailable},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{context.Canceled, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, k.kind) {
			return newProblem(k.status, err.Error())
		}
	}
	return newProblem(http.StatusInternalServerError, err.Error())
}

// writeProblem answers outside of huma's routes.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(newProblem(status, detail)) // fails only if the client is gone
}
