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
	files := map[string]string{"/": "static/page.html"}
	for _, name := range []string{"page.css", "page.js", "ask.js", "live.js", "start.js"} {
		files["/static/"+name] = "static/" + name
	}
	for path, file := range files {
		s.router.NewRoute().Path(path).Methods(http.MethodGet).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			http.ServeFileFS(w, r, static, file)
		})
	}
}
