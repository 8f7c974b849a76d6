package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humamux"
	"github.com/gorilla/mux"

	"netsplit/api/wire"
	"netsplit/model"
)

// Config is what New needs. Service and Metrics must be set.
type Config struct {
	Service Service
	Metrics *Metrics
	// Keys remembers idempotency keys; nil refuses the header.
	Keys KeyStore
	// Access says who is let in; nil: the daemon's own user and root alone, by
	// connections within this machine.
	Access *Access
	// AllowedHosts are names, beside loopback names and IP addresses, under
	// which the daemon may be reached. Others are refused: see guard.
	AllowedHosts []string
	// Version of the program, for /v1/version and the page.
	Version string
	// Log gets what is no user's fault; nil is slog.Default.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// KeepAlive is how often an idle event stream gets a comment line; 0 is
	// 15 s.
	KeepAlive time.Duration

	writeTime, streamTime time.Duration // 0: the usual ones
}

// maxBody bounds the body of a request.
const maxBody = 64 << 10

type server struct {
	Config
	started time.Time
	router  *mux.Router
	// changing is held between the check of If-Match and the write, so that no other request
	// changes the object between them.
	changing sync.Mutex
	api      huma.API
}

// New returns the handler of the whole API. It may be called more than once.
func New(c Config) http.Handler {
	s := newServer(c)
	return s.paces(s.count(s.recoverPanics(s.guard(headAsGet(s.conditional(s.router))))))
}

func newServer(c Config) *server {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 15 * time.Second
	}
	if c.Access == nil {
		c.Access = &Access{}
	}
	c.writeTime, c.streamTime = cmp.Or(c.writeTime, writeTime), cmp.Or(c.streamTime, streamTime)
	s := &server{Config: c, started: c.Now(), router: mux.NewRouter().SkipClean(true)}
	s.router.NotFoundHandler = http.HandlerFunc(s.notFound)
	s.router.MethodNotAllowedHandler = http.HandlerFunc(s.methodNotAllowed)
	s.router.Use(nameRoute)
	s.api = humamux.New(s.router, openAPIConfig())
	s.api.UseMiddleware(s.strictParams)
	s.routes()
	return s
}

// contractVersion is the version of the contract, not of the program: the
// golden file must not change with each build.
const contractVersion = "1.0.0"

func openAPIConfig() huma.Config {
	c := huma.DefaultConfig("netsplit", contractVersion)
	c.Info.Description = "Cuts and heals the network of a distributed system under test, and judges the results. " +
		"Errors are problem details (RFC 9457). For the next page of a list send its next as cursor."
	c.OpenAPIPath = "/v1/openapi"
	c.DocsPath, c.SchemasPath = "", ""
	c.CreateHooks = nil // no $schema field in every answer
	c.RejectUnknownQueryParameters = true
	c.Formats = map[string]huma.Format{"application/json": strictJSON(), "json": strictJSON()}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "The token of serve --token-file, or the read-only token of netsplit access read-token (GET, and POST of queries). " +
			"Not needed on the daemon's Unix socket, which is for its own user and root."},
		"page": {Type: "apiKey", In: "cookie", Name: "netsplit-PORT", Description: "Cookie of a browser that opened the address of netsplit access page; GET, and POST of queries. With --controls its page has a bearer token that also pauses, resumes and cancels campaigns, heals, and writes notes; with --start one that also starts and schedules campaigns."},
	}
	c.Security = []map[string][]string{{"token": {}}, {"page": {}}}
	return c
}

func (s *server) routes() {
	get(s, "/v1/campaigns", "list-campaigns", "List campaigns, newest first", s.listCampaigns)
	post(s, "/v1/campaigns", "create-campaign", "Start a campaign", http.StatusAccepted, s.createCampaign)
	get(s, "/v1/campaigns/{id}", "get-campaign", "Show a campaign", s.getCampaign)
	del(s, "/v1/campaigns/{id}", "cancel-campaign", "Cancel a campaign", s.cancelCampaign)
	post(s, "/v1/campaigns/{id}/pause", "pause-campaign", "Pause a campaign: the scenarios of its current runs are run again when it is resumed", http.StatusAccepted, s.pauseCampaign)
	post(s, "/v1/campaigns/{id}/resume", "resume-campaign", "Continue a campaign that is paused, or that failed, for example on a full disk", http.StatusAccepted, s.resumeCampaign)
	get(s, "/v1/campaigns/{id}/runs", "list-runs", "List the runs of a campaign, the last one started first", s.listCampaignRuns)
	get(s, "/v1/campaigns/{id}/causes", "list-causes", "List the causes of a campaign's failed runs, the costliest first", s.listCauses)
	get(s, "/v1/campaigns/{id}/causes/{cause}", "get-cause", "Show a cause with all of its runs", s.getCause)
	get(s, "/v1/campaigns/{id}/map", "get-partition-map", "Show a campaign's partition map: which messages its faults met, and how those runs ended", s.getMap)
	get(s, "/v1/campaigns/{id}/comparison", "compare-campaign", "Compare the findings of a campaign with those of an earlier one on the same target", s.compare)
	s.pointRoutes()
	s.scheduleRoutes()
	get(s, "/v1/runs", "list-all-runs", "List runs: the newest campaign's first, and of each the last one started first", s.listRuns)
	get(s, "/v1/runs/{id}", "get-run", "Show a run", s.getRun)
	post(s, "/v1/runs/{id}/judgement", "judge-run", "Judge the record of a run again, and bring the findings and the report of its campaign up to date", http.StatusOK, s.judgeRun)
	get(s, "/v1/runs/{id}/live", "watch-run", "Show a run that is under way: its cuts, and its last messages and faults", s.liveState)
	get(s, "/v1/runs/{id}/query", "query-run", "Ask the record of a run with SQL", s.queryRun)
	post(s, "/v1/runs/{id}/query", "query-run-long", "Ask the record of a run with SQL; needs read access only, as GET", http.StatusOK, s.queryRunLong)
	s.fileRoutes()
	s.targetRoutes()
	get(s, "/v1/findings", "list-findings", "List findings: the newest campaign's first, and within it the costliest first", s.listFindings)
	get(s, "/v1/findings/{id}", "get-finding", "Show a finding", s.getFinding)
	get(s, "/v1/finding-histories", "list-finding-histories", "List failures over all campaigns: new, known, back or gone", s.listHistories)
	get(s, "/v1/finding-histories/{id}", "get-finding-history", "Show a failure over all campaigns", s.getHistory)
	put(s, "/v1/finding-histories/{id}/note", "note-finding", "Write a note about a failure, for all campaigns", s.noteFinding)
	get(s, "/v1/invariants", "list-invariants", "List invariants", s.listInvariants)
	post(s, "/v1/invariants", "pin-invariant", "Pin an invariant, mined or not", http.StatusOK, s.pinInvariant)
	get(s, "/v1/invariants/{id}", "get-invariant", "Show an invariant", s.getInvariant)
	put(s, "/v1/invariants/{id}", "set-invariant", "Pin, drop or release an invariant", s.setInvariant)
	get(s, "/v1/switches", "list-switches", "List switches with ports and rules", s.listSwitches)
	get(s, "/v1/hosts", "list-hosts", "List the hosts of the testbed", s.listHosts)
	get(s, "/v1/runners", "list-runners", "List the runners that have joined; none where the daemon makes the runs itself", s.listRunners)
	get(s, "/v1/partitions", "list-partitions", "List manual partitions, newest first; all current ones are on the first page", s.listPartitions)
	post(s, "/v1/partitions", "create-partition", "Make a partition", http.StatusAccepted, s.createPartition)
	ensure := operation(http.MethodPut, "/v1/partitions/{name}", "put-partition", "Make a partition, unless the same partition exists already; another one under the name is a conflict", http.StatusAccepted)
	huma.Register(s.api, ensure, s.putPartition)
	alsoOK(s.api.OpenAPI().Paths[ensure.Path].Put)
	get(s, "/v1/partitions/{name}", "get-partition", "Show a partition", s.getPartition)
	del(s, "/v1/partitions/{name}", "delete-partition", "Heal a partition", s.deletePartition)
	post(s, "/v1/reset", "reset", "Heal everything; answers after proof", http.StatusOK, s.reset)
	post(s, "/v1/store/prune", "prune-records", "Delete records of runs by age and size; those that a finding names stay", http.StatusOK, s.prune)
	post(s, "/v1/diagnosis", "examine", "Examine the testbed and say what will work; takes some seconds for each switch", http.StatusOK, s.examine)
	get(s, "/v1/annotations", "list-annotations", "List the cuts of a time span, for graphs", s.listAnnotations)
	s.eventRoute()
	get(s, "/v1/version", "get-version", "Say what runs", s.getVersion)
	post(s, "/v1/access/page", "access-page", "Make an address that opens the page in a browser once", http.StatusOK, s.accessPage)
	post(s, "/v1/access/read-token", "access-read-token", "Get the read-only token, for Prometheus", http.StatusOK, s.accessReadToken)
	s.healthRoutes()
	describeTags(s.api.OpenAPI())
	addLinks(s.api.OpenAPI())

	s.router.NewRoute().Path("/metrics").Methods(http.MethodGet).Handler(s.Metrics.Handler())
	s.pageRoutes()
}

func operation(method, path, id, summary string, status int) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: status, MaxBodyBytes: maxBody}
}

func get[I, O any](s *server, path, id, summary string, h func(context.Context, *I) (*O, error)) {
	huma.Register(s.api, operation(http.MethodGet, path, id, summary, http.StatusOK), h)
}

func put[I, O any](s *server, path, id, summary string, h func(context.Context, *I) (*O, error)) {
	huma.Register(s.api, operation(http.MethodPut, path, id, summary, http.StatusOK), h)
}

func post[I, O any](s *server, path, id, summary string, status int, h func(context.Context, *I) (*O, error)) {
	op := operation(http.MethodPost, path, id, summary, status)
	if status == http.StatusAccepted {
		op.Description = "Answers 202 with Location at once; with Prefer: wait=N it waits up to N seconds for the outcome and then answers 200 or 202. " +
			"A repeated request with the same Idempotency-Key gets the first answer again."
	}
	huma.Register(s.api, op, h)
	if status == http.StatusAccepted {
		alsoOK(s.api.OpenAPI().Paths[path].Post)
	}
}

// alsoOK says in the contract that an operation may have ended at once.
func alsoOK(op *huma.Operation) {
	ok := *op.Responses["202"]
	ok.Description = "OK: it has ended, and this is the outcome"
	op.Responses["200"] = &ok
}

func del[I, O any](s *server, path, id, summary string, h func(context.Context, *I) (*O, error)) {
	op := operation(http.MethodDelete, path, id, summary, http.StatusAccepted)
	op.Description = "Answers 200 if it has already ended, else 202 with Location. It may be repeated."
	huma.Register(s.api, op, h)
	alsoOK(s.api.OpenAPI().Paths[path].Delete)
}

type none struct{}

// body wraps what an operation answers.
type body[T any] struct{ Body T }

func (s *server) getVersion(context.Context, *none) (*body[wire.Version], error) {
	return &body[wire.Version]{wire.Version{Version: s.Version, Go: runtime.Version()}}, nil
}

// healthRoutes are the health, readiness and liveness checks of service managers.
func (s *server) healthRoutes() {
	get(s, healthPath, "get-health", "Say whether the daemon can do its work; without credentials, with no details", s.getHealth)
	get(s, readyPath, "get-ready", "As /healthz: whether a campaign or a partition would find what it needs now", s.getHealth)
	get(s, alivePath, "get-alive", "Say that the daemon answers, whatever its testbed does: only if it does not, a restart may help", s.getAlive)
	for _, path := range []string{healthPath, readyPath, alivePath} {
		op := s.api.OpenAPI().Paths[path].Get
		op.Security = []map[string][]string{{}, {"token": {}}, {"page": {}}}
		if path != alivePath {
			unavailable := *op.Responses["200"]
			unavailable.Description = "It cannot: see checks"
			op.Responses["503"] = &unavailable
		}
	}
}

func (s *server) getAlive(context.Context, *none) (*body[wire.Alive], error) {
	return &body[wire.Alive]{wire.Alive{OK: true}}, nil
}

type healthOutput struct {
	Status int
	Body   model.Health
}

func (s *server) getHealth(ctx context.Context, _ *none) (*healthOutput, error) {
	h := s.Service.Health(ctx)
	out := &healthOutput{Status: http.StatusOK, Body: h}
	if !h.OK {
		out.Status = http.StatusServiceUnavailable
	}
	if !trusted(ctx) {
		out.Body.Checks = []model.HealthCheck{} // names and details are for those who are let in
	}
	return out, nil
}

type accessPageInput struct {
	Controls bool `query:"controls" doc:"The page may also pause, resume and cancel campaigns, heal, and write notes about failures"`
	Start    bool `query:"start" doc:"The page may do what controls allows, and start and schedule campaigns on targets that the daemon has"`
}

func (in *accessPageInput) level() level {
	switch {
	case in.Start:
		return starter
	case in.Controls:
		return operator
	}
	return reader
}

func (s *server) accessPage(_ context.Context, in *accessPageInput) (*body[wire.AccessPage], error) {
	url, until, err := s.Access.page(in.level())
	if err != nil {
		return nil, newProblem(http.StatusConflict, err.Error()+": start it with --listen.")
	}
	return &body[wire.AccessPage]{wire.AccessPage{URL: url, Until: until}}, nil
}

type readTokenInput struct {
	New bool `query:"new" doc:"Replace the token"`
}

func (s *server) accessReadToken(_ context.Context, in *readTokenInput) (*body[wire.AccessToken], error) {
	token, err := s.Access.readToken(in.New)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.AccessToken]{wire.AccessToken{Token: token}}, nil
}
