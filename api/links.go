package api

import (
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// itemPath is a path below one element of a list: the list, the parameter that names the
// element, and what follows.
var itemPath = regexp.MustCompile(`^(.*)/\{([a-z]+)\}(?:/[^{}]*)?$`)

// addLinks says in the contract which operations take what another one answers: those of an
// element, after the answer that makes or lists it. Clients that are made from the contract
// may follow them, and its test does.
func addLinks(api *huma.OpenAPI) {
	for path, source := range api.Paths {
		for _, op := range []*huma.Operation{source.Get, source.Post, source.Put} {
			if op == nil {
				continue
			}
			for code, answer := range op.Responses {
				if !strings.HasPrefix(code, "2") || answer.Content["application/json"] == nil {
					continue
				}
				schema := resolve(api, answer.Content["application/json"].Schema)
				for target, item := range api.Paths {
					m := itemPath.FindStringSubmatch(target)
					if m == nil {
						continue
					}
					from := element(api, schema, path, m[1], m[2])
					if from == "" && op.Method == "PUT" && path == m[1]+"/{"+m[2]+"}" {
						from = "$request.path." + m[2] // it makes the element of this name
					}
					if from == "" {
						continue
					}
					parameters := map[string]any{m[2]: from}
					for _, p := range op.Parameters {
						if p.In == "path" && p.Name != m[2] && strings.Contains(m[1], "{"+p.Name+"}") {
							parameters[p.Name] = "$request.path." + p.Name
						}
					}
					for _, to := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
						if to == nil || to.Hidden || to == op {
							continue
						}
						if answer.Links == nil {
							answer.Links = map[string]*huma.Link{}
						}
						answer.Links[to.OperationID] = &huma.Link{OperationID: to.OperationID, Parameters: parameters}
					}
				}
			}
		}
	}
}

// element says where the answer of a path has the parameter that names an element of a list;
// "" where it has no element of this list.
func element(api *huma.OpenAPI, answer *huma.Schema, path, list, parameter string) string {
	last := func(p string) string { return p[strings.LastIndex(p, "/")+1:] }
	// /v1/campaigns/{id}/runs lists elements of /v1/runs
	if path != list && (strings.Count(list, "/") != 2 || last(path) != last(list)) {
		return ""
	}
	at := "$response.body#/"
	if items := answer.Properties["items"]; items != nil {
		answer, at = resolve(api, items.Items), at+"items/0/"
	}
	for _, name := range []string{parameter, "id"} {
		if answer.Properties[name] != nil {
			return at + name
		}
	}
	return ""
}

func resolve(api *huma.OpenAPI, s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = api.Components.Schemas.SchemaFromRef(s.Ref)
	}
	if s == nil {
		return &huma.Schema{}
	}
	return s
}
