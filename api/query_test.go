package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"netsplit/api"
	"netsplit/model"
)

// TestARunIsAskedWithSQL, by GET and by POST, also by those who may only read.
func TestARunIsAskedWithSQL(t *testing.T) {
	f := newFake(t)
	acc := access(t, t.TempDir(), "http://127.0.0.1:7070")
	srv := start(t, handler(t, f, func(c *api.Config) { c.Access = acc }))
	owner := "Authorization: Bearer " + token
	read := "Authorization: Bearer " + expect(t, srv, 200, "POST", "/v1/access/read-token", "", owner)["token"].(string)
	path := "/v1/runs/c-1-r0001/query"
	for _, who := range []string{owner, read} {
		for _, out := range []map[string]any{
			expect(t, srv, 200, "GET", path+"?limit=7&sql="+url.QueryEscape("select 'a+b'"), "", who),
			expect(t, srv, 200, "POST", path, `{"sql":"select 'a+b'","limit":7}`, who),
		} {
			if got := fmt.Sprint(out); got != "map[columns:[sql limit] rows:[[select 'a+b' 7] [<nil> 0.5]] truncated:true]" {
				t.Errorf("%s", got)
			}
		}
	}
	if out := expect(t, srv, 200, "POST", path, `{"sql":"select 1"}`, read); !strings.Contains(fmt.Sprint(out), "1000") {
		t.Errorf("without a limit: %v", out)
	}
	// What else is sent by POST is not for readers, however it looks.
	for _, other := range []string{"/v1/reset", "/v1/campaigns/x/query", "/v1/runs/a/b/query", path + "/", "/v1/targets"} {
		expect(t, srv, 403, "POST", other, "{}", read)
	}
	expect(t, srv, 403, "DELETE", path, "", read)
	expect(t, srv, 403, "POST", path, `{"sql":"select 1"}`, read, "Sec-Fetch-Site: cross-site")
	expect(t, srv, 401, "POST", path, `{"sql":"select 1"}`)
	for body, status := range map[string]int{
		`{"sql":"select * from nosuch"}`: 422, `{"sql":""}`: 422, `{}`: 422, `{"sql":"select 1","limit":0}`: 422, `{"sql":"select 1","limit":10001}`: 422,
		`{"sql":"` + strings.Repeat("x", 40000) + `"}`: 422, `{"sql":"` + strings.Repeat("x", 70000) + `"}`: 413, `{"sql":`: 400, `{"sql":"select 1","more":1}`: 422,
	} {
		expect(t, srv, status, "POST", path, body, read)
	}
	expect(t, srv, 422, "GET", path, "", read)
	expect(t, srv, 422, "GET", path+"?sql=select+*+from+nosuch", "", read)
	expect(t, srv, 404, "GET", "/v1/runs/c-9-r0001/query?sql=select+1", "", read)
}

// TestPointsOfEveryFault: a kind that the model gains can be asked for.
func TestPointsOfEveryFault(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name   string
				Schema struct{ Enum []model.PointFaultKind }
			}
		}
	}
	b, err := os.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range doc.Paths["/v1/campaigns/{id}/points"]["get"].Parameters {
		if p.Name == "fault" && slices.Equal(p.Schema.Enum, model.SearchedFaults()) {
			return
		}
	}
	t.Error("GET …/points has not the faults of a search")
}
