package api

import (
	"embed"
	"net/http"
)

//go:embed static
var static embed.FS

// pageRoutes serve the page: it is static, asks the API for what it shows,
// and loads nothing from anywhere else.
func (s *server) pageRoutes() {
	for path, file := range map[string]string{
		"/": "static/page.html", "/static/page.js": "static/page.js", "/static/page.css": "static/page.css",
	} {
		s.router.NewRoute().Path(path).Methods(http.MethodGet).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			http.ServeFileFS(w, r, static, file)
		})
	}
}
