package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humamux"

	"netsplit/api/wire"
	"netsplit/model"
)

const eventsPath = "/v1/events"

type eventsInput struct {
	After       uint64 `query:"after" doc:"Number of the last event that you saw; 0 or absent: start at the first that is kept"`
	New         bool   `query:"new" doc:"Leave out what has happened already; after and Last-Event-ID are stronger"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Like after, and stronger; browsers send it when they reconnect"`
}

func (s *server) eventRoute() {
	op := operation(http.MethodGet, eventsPath, "stream-events", "Follow changes as they happen", http.StatusOK)
	op.Description = "Server-sent events. The id of an event is its number, so Last-Event-ID resumes without a gap; its name is the kind, " +
		"its data one Event as JSON. Numbers keep rising over a restart of the daemon. The last 10,000 events are kept in memory: " +
		"a reader who missed some first gets an event of kind events and state missed. Comment lines keep an idle stream open. A reader that is too slow is disconnected and may resume."
	// huma would describe the stream as an array.
	op.Responses = map[string]*huma.Response{"200": {
		Description: "A stream of events; the data of each is an Event.",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(s.api, op, s.streamEvents)
}

func (s *server) streamEvents(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	after := in.After
	if in.New && after == 0 {
		after = model.EventsFromNow
	}
	if in.LastEventID != "" {
		n, err := strconv.ParseUint(in.LastEventID, 10, 64)
		if err != nil {
			return nil, newProblem(http.StatusUnprocessableEntity, "Last-Event-ID is not an event number: send the id of the last event that you saw, or none.")
		}
		after = n
	}
	events, err := s.Service.Events(ctx, after)
	if err != nil {
		return nil, fromService(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humamux.Unwrap(hc)
		s.copyEvents(ctx, w, events)
	}}, nil
}

func (s *server) copyEvents(ctx context.Context, w http.ResponseWriter, events <-chan model.ServiceEvent) {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	write := func(format string, a ...any) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(s.streamTime)) // a recorder in a test has none
		_, err := fmt.Fprintf(w, format, a...)
		return err == nil && rc.Flush() == nil
	}
	if !write(": netsplit\n\n") {
		return
	}
	alive := time.NewTicker(s.KeepAlive)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-alive.C:
			if !write(": alive\n\n") {
				return
			}
		case e, ok := <-events:
			if !ok {
				return
			}
			data, err := json.Marshal(e)
			if err != nil || !write("id: %d\nevent: %s\ndata: %s\n\n", e.Num, e.Kind, data) {
				return
			}
		}
	}
}

type fileInput struct {
	IDParam
	Name string `path:"name" pattern:"^[a-z0-9.-]{1,64}$" doc:"Name of the file"`
}

func (s *server) fileRoutes() {
	report := operation(http.MethodGet, "/v1/runs/{id}/report", "get-report", "Get the report of a run", http.StatusOK)
	report.Responses = fileResponse("text/html")
	huma.Register(s.api, report, func(ctx context.Context, in *IDParam) (*huma.StreamResponse, error) {
		return s.runFile(ctx, in.ID, "report.html")
	})
	s.campaignReportRoutes()
	file := operation(http.MethodGet, "/v1/runs/{id}/files/{name}", "get-run-file", "Get a file of a run's record", http.StatusOK)
	var types []string
	for _, t := range RunFiles {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	file.Responses = fileResponse(types...)
	backup := operation(http.MethodPost, "/v1/store/backup", "backup-store", "Get a copy of the store, all of one moment; it changes nothing", http.StatusOK)
	backup.Responses = fileResponse("application/octet-stream")
	huma.Register(s.api, backup, func(ctx context.Context, _ *none) (*huma.StreamResponse, error) {
		f, err := s.Service.Backup(ctx)
		if err != nil {
			return nil, fromService(err)
		}
		return serveFile(f, "application/octet-stream")
	})
	get(s, "/v1/runs/{id}/logs", "list-run-logs", "List what processes of a run printed, and their log files", s.listRunLogs)
	log := operation(http.MethodGet, "/v1/runs/{id}/log", "get-run-log", "Get what a process of a run printed, or a log file of it", http.StatusOK)
	log.Responses = fileResponse("text/plain")
	huma.Register(s.api, log, s.runLog)
	exported := operation(http.MethodGet, "/v1/runs/{id}/export/{format}", "export-run", "Get the record of a run as a log for ShiViz, or as a trace for Perfetto", http.StatusOK)
	exported.Responses = fileResponse(model.ExportShiViz.MediaType(), model.ExportTrace.MediaType())
	huma.Register(s.api, exported, s.exportRun)
	huma.Register(s.api, file, func(ctx context.Context, in *fileInput) (*huma.StreamResponse, error) {
		return s.runFile(ctx, in.ID, in.Name)
	})
}

func (s *server) listRunLogs(ctx context.Context, in *IDParam) (*body[wire.LogFiles], error) {
	list, err := s.Service.RunLogs(ctx, in.ID)
	if err != nil {
		return nil, fromService(err)
	}
	return &body[wire.LogFiles]{wire.LogFiles{Items: list}}, nil
}

type logInput struct {
	IDParam
	Name string `query:"name" required:"true" minLength:"1" maxLength:"1024" doc:"Name of the file, as the list of logs has it" example:"n1-redis.log"`
}

func (s *server) runLog(ctx context.Context, in *logInput) (*huma.StreamResponse, error) {
	f, err := s.Service.RunLog(ctx, in.ID, in.Name)
	if err != nil {
		return nil, fromService(err)
	}
	return serveFile(f, "text/plain; charset=utf-8")
}

type exportInput struct {
	IDParam
	Format string `path:"format" enum:"shiviz,trace"`
}

func (s *server) exportRun(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	format := model.ExportFormat(in.Format)
	f, err := s.Service.ExportRun(ctx, in.ID, format)
	if err != nil {
		return nil, fromService(err)
	}
	return serveFile(f, format.MediaType()+"; charset=utf-8")
}

func fileResponse(types ...string) map[string]*huma.Response {
	content := map[string]*huma.MediaType{}
	for _, t := range types {
		content[t] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		if t == "application/json" {
			content[t].Schema = &huma.Schema{}
		}
	}
	return map[string]*huma.Response{"200": {Description: "The file", Content: content}}
}

func (s *server) runFile(ctx context.Context, id, name string) (*huma.StreamResponse, error) {
	contentType, ok := RunFiles[name]
	if !ok {
		names := make([]string, 0, len(RunFiles))
		for n := range RunFiles {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, newProblem(http.StatusNotFound, fmt.Sprintf("A run has no file %q: it has %v.", name, names))
	}
	f, err := s.Service.RunFile(ctx, id, name)
	if err != nil {
		return nil, fromService(err)
	}
	return serveFile(f, contentType)
}

// A file shows text that the target chose. The report of a run has a script: it runs as a
// site of its own and cannot speak for this one.
const ownSite = "sandbox allow-scripts allow-downloads"

// serveFile sends a file and closes it.
func serveFile(f *os.File, contentType string) (*huma.StreamResponse, error) {
	return serveUnder(f, contentType, ownSite)
}

// serveUnder is serveFile with a content security policy.
func serveUnder(f *os.File, contentType, policy string) (*huma.StreamResponse, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fromService(errors.Join(err, f.Close()))
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer f.Close()
		r, w := humamux.Unwrap(hc)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Security-Policy", policy)
		http.ServeContent(w, r, "", st.ModTime(), f)
	}}, nil
}
