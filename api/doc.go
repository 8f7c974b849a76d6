// Package api serves netsplit over HTTP: the REST interface under /v1, a live
// event stream, Prometheus metrics, a health check and a small page to look
// at.
//
// It holds no state and no decision of its own: what it serves comes from a
// Service, which it declares here and which the daemon plugs in, and from the
// hooks of Metrics. Open routes.go first: every route is named in one place.
//
// The contract is /v1/openapi.json, kept beside this file as openapi.json so
// that a change of it shows in review. Errors are problem details (RFC 9457)
// of content type application/problem+json.
package api
