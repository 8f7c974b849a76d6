package api

import (
	"context"
	"net/http"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

type routeKey struct{}

const otherRoute = "other"

// count counts the requests that h answers and the time that it takes, event streams apart:
// they end when the client goes.
func (s *server) count(h http.Handler) http.Handler {
	route := promhttp.WithLabelFromCtx("route", func(ctx context.Context) string {
		if r, ok := ctx.Value(routeKey{}).(*string); ok {
			return *r
		}
		return otherRoute
	})
	counted := promhttp.InstrumentHandlerCounter(s.Metrics.requests, h, route)
	timed := promhttp.InstrumentHandlerDuration(s.Metrics.answers, counted)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := otherRoute
		r = r.WithContext(context.WithValue(r.Context(), routeKey{}, &name))
		if r.URL.Path == eventsPath {
			counted.ServeHTTP(w, r)
			return
		}
		timed.ServeHTTP(w, r)
	})
}

// nameRoute tells count the template of the route that a request reached: with the path
// itself each id would be a series.
func nameRoute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := r.Context().Value(routeKey{}).(*string); ok {
			if t, err := mux.CurrentRoute(r).GetPathTemplate(); err == nil {
				*name = t
			}
		}
		next.ServeHTTP(w, r)
	})
}
