// Package api serves netsplit over HTTP: the REST interface under /v1, a live
// event stream, Prometheus metrics, a health check and a small page to look
// at.
//
// It holds no state of campaigns, only counters for metrics and the credentials of pages. It
// serves what a Service and the hooks of Metrics tell it. It declares Service here, and the
// daemon provides one. Open routes.go first: it names every route.
//
// The contract is /v1/openapi.json. A copy is openapi.json beside this file, so that a
// change shows in review. Errors are problem details (RFC 9457)
// of content type application/problem+json.
package api
