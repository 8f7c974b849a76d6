package campaign

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"netsplit/api/wire"
	"netsplit/internal/storetest"
	"netsplit/model"
)

// storeTarget has servers on all nodes, of which n4 has a manual one, too; n1 and n2 have two.
// Its workload takes 10 s, and 15 s more at most.
func storeTarget() *model.Target {
	t := ringTarget()
	t.Processes = []model.Process{{Name: "db", Hosts: t.Nodes}, {Name: "log", Hosts: []model.NodeID{"n1", "n2"}},
		{Name: "extra", Hosts: []model.NodeID{"n4"}, Manual: true}, {Name: "init", Hosts: t.Nodes, Once: true}}
	t.Roles = map[string]model.Role{"leader": {Hosts: t.Nodes}}
	t.Workloads = []model.Workload{{Name: "w", Host: "c1", Command: []string{"w"}}}
	t.Timing = model.Timing{Workload: 10 * time.Second, MaxCut: 2 * time.Second, Tick: 50 * time.Millisecond}
	return t
}

// completed is the scenario of JSON steps on storeTarget, as a campaign gets it.
func completed(t *testing.T, steps string, change func(*model.Target)) (*model.Scenario, *model.Target, error) {
	t.Helper()
	var spec wire.ScenarioSpec
	if err := json.Unmarshal([]byte(`{"steps": [`+steps+`]}`), &spec); err != nil {
		t.Fatalf("%s: %v", steps, err)
	}
	sc, err := spec.Model()
	if err != nil {
		t.Fatalf("%s: %v", steps, err)
	}
	target := storeTarget()
	if change != nil {
		change(target)
	}
	s := &Service{store: storetest.New(t), cfg: Config{InProcess: true}}
	got, err := s.userScenario(model.CampaignSpec{Scenario: sc}, target)
	return got, target, err
}

// TestStepsThatExcludeOneAnother are refused, with both; what may come in another order is not.
func TestStepsThatExcludeOneAnother(t *testing.T) {
	const (
		crash    = `{"do": {"crash": "n1"}}`
		crashAt2 = `{"when": {"at": "2s"}, "do": {"crash": "n1"}}`
		until6   = `{"when": {"at": "2s"}, "do": {"crash": "n1"}, "until": {"at": "6s"}}`
		onAck    = `"when": {"message": {"type": "text ACK"}}`
		isolate  = `{"when": {"at": "2s"}, "do": {"isolate": "n3"}, "until": {"at": "4s"}}`
	)
	for name, c := range map[string]struct {
		steps   string
		refused string // "": it is not
	}{
		"two crashes": {crashAt2 + `, {"when": {"at": "4s"}, "do": {"crash": "n1"}}`,
			"step 2 (crash n1) finds no server of n1 that runs: step 1 (crash n1) has crashed them, and they start again only as the workload ends: let that one end earlier, set ifRunning, or leave out one of them"},
		"in the other order of the file":       {`{"when": {"at": "4s"}, "do": {"crash": "n1"}}, ` + crashAt2, "step 1 (crash n1) finds no server of n1 that runs: step 2"},
		"of which the second is for some time": {crashAt2 + `, {"when": {"at": "4s"}, "do": {"crash": "n1"}, "until": {"after": "1s"}}`, "step 2 (crash n1) finds no server"},
		"before the first ends":                {until6 + `, {"when": {"at": "4s"}, "do": {"crash": "n1"}}`, "they start again only once that step ends"},
		"the one follows the other":            {`{` + onAck + `, "do": {"crash": "n1"}}, {"when": {"follows": "begin", "message": {"type": "text A"}}, "do": {"crash": "n1"}}`, "step 2 (crash n1) finds"},
		"soon after the other":                 {`{` + onAck + `, "do": {"crash": "n1"}, "until": {"after": "5s"}}, {"when": {"follows": "begin", "after": "1s"}, "do": {"crash": "n1"}}`, "only once that step ends"},
		"whichever is first":                   {`{` + onAck + `, "do": {"crash": "n1"}}, {"when": {"message": {"type": "text A"}}, "do": {"crash": "n1"}}`, "step 2 (crash n1) finds"},
		"a power cut":                          {crash + `, {"when": {"at": "1s"}, "do": {"disk": {"fault": "power-cut", "host": "n1"}}}`, "step 2 (power cut on n1) finds no server"},
		"a pause":                              {crash + `, {"when": {"at": "1s"}, "do": {"pause": "n1"}}`, "step 2 (pause n1) finds no server"},
		"a silent crash":                       {`{"do": {"crash": "n1", "silent": true}}, {"when": {"at": "1s"}, "do": {"crash": "n1"}}`, "step 2 (crash n1) finds"},
		"of one server":                        {`{"do": {"crash": "n1", "process": "db"}}, {"when": {"at": "1s"}, "do": {"crash": "n1", "process": "db"}}`, "step 2 (crash db on n1) finds"},
		"a full disk":                          {crash + `, {"when": {"at": "1s"}, "do": {"disk": {"fault": "full", "host": "n1"}}}`, "or let the disk fail before"},
		"a failed write":                       {crash + `, {"when": {"file": {"op": "write", "host": "n1"}}, "do": {"disk": {"fault": "eio"}}}`, "step 2 (fail it with EIO on n1) can never begin: no server of n1 does anything to a file"},
		"a cut at a write":                     {crash + `, {"when": {"file": {"op": "write", "host": "n1"}}, "do": {"isolate": "n3"}}`, "can never begin: no server of n1"},

		"once it ended":                  {until6 + `, {"when": {"at": "8s"}, "do": {"crash": "n1"}}`, ""},
		"once it may have ended":         {until6 + `, {"when": {"at": "5.5s"}, "do": {"crash": "n1"}}`, ""},
		"after it ended":                 {until6 + `, {"when": {"follows": "end", "after": "1s"}, "do": {"crash": "n1"}}`, ""},
		"at messages":                    {`{` + onAck + `, "do": {"crash": "n1"}}, {"when": {"message": {"type": "text A"}}, "do": {"crash": "n1"}, "until": {"after": "1s"}}`, ""},
		"until a message":                {`{"when": {"at": "2s"}, "do": {"crash": "n1"}, "until": {"message": {"type": "text A"}}}, {"when": {"at": "4s"}, "do": {"crash": "n1"}}`, ""},
		"at almost the same time":        {`{"when": {"at": "2s"}, "do": {"crash": "n1"}}, {"when": {"at": "1.9s"}, "do": {"crash": "n1"}, "until": {"after": "1s"}}`, ""},
		"at a message of that time":      {crashAt2 + `, {"when": {"at": "2s", "message": {"type": "text A"}}, "do": {"crash": "n1"}, "until": {"after": "1s"}}`, ""},
		"if it runs":                     {crashAt2 + `, {"when": {"at": "4s"}, "do": {"crash": "n1", "ifRunning": true}}`, ""},
		"if it ran":                      {`{"when": {"at": "2s"}, "do": {"crash": "n1", "ifRunning": true}}, {"when": {"at": "4s"}, "do": {"crash": "n1"}}`, ""},
		"another one may start it":       {`{"do": {"crash": "n1"}, "until": {"at": "4s"}}, {"when": {"at": "2s"}, "do": {"crash": "n1", "ifRunning": true}}, {"when": {"at": "6s"}, "do": {"crash": "n1"}}`, ""},
		"a later one may start it":       {`{` + onAck + `, "do": {"crash": "n1"}}, {"when": {"follows": "begin", "message": {"type": "text A"}}, "do": {"crash": "n1"}}, {"do": {"disk": {"fault": "gone", "host": "n1"}}, "until": {"at": "8s"}}`, ""},
		"of another host":                {crash + `, {"when": {"at": "1s"}, "do": {"crash": "n2"}}`, ""},
		"of another server":              {`{"do": {"crash": "n1", "process": "db"}}, {"when": {"at": "1s"}, "do": {"crash": "n1", "process": "log"}}`, ""},
		"of one, then of all":            {`{"do": {"crash": "n1", "process": "db"}}, {"when": {"at": "1s"}, "do": {"crash": "n1"}}`, ""},
		"of whoever leads":               {`{"do": {"crash": "leader"}}, {"when": {"at": "1s"}, "do": {"crash": "leader"}}`, ""},
		"a workload may start one":       {`{"do": {"crash": "n4"}}, {"when": {"at": "1s"}, "do": {"crash": "n4"}}`, ""},
		"a disk fails once it is back":   {`{"do": {"crash": "n1"}, "until": {"at": "3s"}}, {"when": {"at": "1s"}, "do": {"disk": {"fault": "full", "host": "n1"}}}`, ""},
		"a write once it is back":        {`{"do": {"crash": "n1"}, "until": {"at": "3s"}}, {"when": {"file": {"op": "write", "host": "n1"}}, "do": {"disk": {"fault": "eio"}}}`, ""},
		"a write before":                 {`{` + onAck + `, "do": {"crash": "n1"}}, {"when": {"file": {"op": "write", "host": "n1"}}, "do": {"disk": {"fault": "eio"}}}`, ""},
		"a pause, then a crash":          {`{"do": {"pause": "n1"}}, {"when": {"at": "1s"}, "do": {"crash": "n1"}}`, ""},
		"a dead host is isolated":        {crash + `, {"when": {"at": "1s"}, "do": {"isolate": "n1"}}`, ""},
		"the end of what does not end":   {crash + `, {"when": {"follows": "end"}, "do": {"isolate": "n3"}}`, "step 2 (isolate n3) can never begin: it follows the end of step 1 (crash n1), which ends with the workload"},
		"the end of a failed write":      {`{"when": {"file": {"op": "write", "host": "n1"}}, "do": {"disk": {"fault": "eio"}}}, {"when": {"follows": "end"}, "do": {"crash": "n3"}}`, "can never begin: it follows the end of step 1"},
		"the end of all messages":        {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}, "every": 1}}}, {"when": {"follows": "end"}, "do": {"crash": "n3"}}`, "can never begin: it follows the end of step 1"},
		"the end of one message":         {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}}}}, {"when": {"follows": "end"}, "do": {"crash": "n3"}}`, ""},
		"the end of a cut":               {`{"do": {"isolate": "n3"}}, {"when": {"follows": "end"}, "do": {"crash": "n3"}}`, ""},
		"healed before it begins":        {isolate + `, {"when": {"follows": "end", "after": "1s"}, "do": {"isolate": "n1"}, "until": {"at": "5s"}}`, "step 2 (isolate n1) ends 5s into the workload, before it begins: it begins 5s into it at the earliest and follows the end of step 1 (isolate n3)"},
		"healed before its message":      {`{"when": {"at": "4s", "message": {"type": "text A"}}, "do": {"isolate": "n1"}, "until": {"at": "3s"}}`, "ends 3s into the workload, before it begins: it begins 4s into it at the earliest: let"},
		"healed later":                   {isolate + `, {"when": {"follows": "end", "after": "1s"}, "do": {"isolate": "n1"}, "until": {"at": "5.5s"}}`, ""},
		"the same cut twice":             {isolate + `, ` + isolate, "step 2 (isolate n3) begins and ends when step 1 (isolate n3) does, and cuts the same"},
		"the same at a message":          {`{` + onAck + `, "do": {"isolate": "n3"}}, {` + onAck + `, "do": {"isolate": "n3"}}`, "begins and ends when step 1"},
		"for longer":                     {isolate + `, {"when": {"at": "2s"}, "do": {"isolate": "n3"}, "until": {"at": "5s"}}`, ""},
		"at other times":                 {isolate + `, {"when": {"at": "3s"}, "do": {"isolate": "n3"}, "until": {"at": "5s"}}`, ""},
		"another cut":                    {isolate + `, {"when": {"at": "2s"}, "do": {"isolate": "n2"}, "until": {"at": "4s"}}`, ""},
		"cut as it is healed":            {isolate + `, {"when": {"follows": "end"}, "do": {"isolate": "n3"}}`, "step 2 (isolate n3) begins at the moment at which step 1 (isolate n3) ends"},
		"the same, by the clock":         {isolate + `, {"when": {"at": "4s"}, "do": {"isolate": "n3"}}`, "begins at the moment at which step 1"},
		"cut again, later":               {isolate + `, {"when": {"follows": "end", "after": "10ms"}, "do": {"isolate": "n3"}}`, ""},
		"cut again after a message":      {`{"when": {"at": "2s"}, "do": {"isolate": "n3"}, "until": {"message": {"type": "text A"}}}, {"when": {"follows": "end"}, "do": {"isolate": "n3"}}`, ""},
		"another one as it is healed":    {isolate + `, {"when": {"follows": "end"}, "do": {"isolate": "n2"}}`, ""},
		"the same messages":              {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}}}}, {"do": {"message": {"kind": "delay", "for": "1s", "match": {"type": "text A"}}}}`, "never acts: it waits for the same messages as step 1"},
		"others of these messages":       {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}}}}, {"do": {"message": {"kind": "delay", "for": "1s", "match": {"type": "text A"}, "nth": 2}}}`, ""},
		"other messages":                 {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}}}}, {"do": {"message": {"kind": "delay", "for": "1s", "match": {"type": "text ACK"}}}}`, ""},
		"more of them than it takes":     {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}, "every": 1, "times": 1}}}, {"do": {"message": {"kind": "delay", "for": "1s", "match": {"type": "text A"}, "every": 1, "times": 1}}}`, ""},
		"it may leave them to the other": {`{"do": {"message": {"kind": "reorder", "match": {"type": "text A"}}}}, {"do": {"message": {"kind": "delay", "for": "1s", "match": {"type": "text A"}}}}`, ""},
	} {
		_, _, err := completed(t, c.steps, nil)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.refused != "" && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
	twice := crash + `, {"when": {"at": "1s"}, "do": {"crash": "n1"}}`
	operator := model.Workload{Name: "o", Host: "c1", Command: []string{"o", "{{.Netsplit}}"}, When: model.When{"mode": {"drain"}}}
	if _, _, err := completed(t, twice, func(g *model.Target) { g.Processes[0].Env = map[string]string{"N": "{{.Netsplit}}"} }); err != nil {
		t.Errorf("a server that starts servers again: %v", err)
	}
	for mode, want := range map[string]bool{"drain": true, "plain": false} {
		if _, _, err := completed(t, twice, func(g *model.Target) {
			g.Args, g.Workloads = map[string]model.TargetArg{"mode": {Default: mode}}, append(g.Workloads, operator)
		}); (err == nil) != want {
			t.Errorf("%s: %v: a workload that starts servers again: %v", mode, err, want)
		}
	}
}

// TestAStepThatCannotBegin in time is refused, and one that needs a workload that is late is
// warned of.
func TestAStepThatCannotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		steps, refused, warned string
	}{
		"at the end":           {`{"when": {"at": "9s"}, "do": {"crash": "n1"}}`, "", ""},
		"with luck":            {`{"do": {"crash": "n2"}}, {"when": {"at": "10s"}, "do": {"crash": "n1"}}`, "", "step 2 (crash n1) begins only if the workload takes longer than it should: its time is 10s into the workload at the earliest, and timing.workload is 10s"},
		"never":                {`{"when": {"at": "25s"}, "do": {"crash": "n1"}}`, "step 1 (crash n1) can never begin: its time is 25s into the workload at the earliest, and the workload is over after 25s", ""},
		"with more luck":       {`{"when": {"at": "24s"}, "do": {"crash": "n1"}}`, "", "step 1 (crash n1) begins only if"},
		"never, for a message": {`{"when": {"after": "30s", "message": {"type": "text A"}}, "do": {"crash": "n1"}}`, "step 1 (crash n1) can never begin: its time is 30s", ""},
		"one after the other":  {`{"when": {"at": "8s"}, "do": {"isolate": "n1"}, "until": {"after": "3s"}}, {"when": {"follows": "end", "after": "15s"}, "do": {"crash": "n2"}}`, "step 2 (crash n2) can never begin: its time is 26s", ""},
		"with a bound":         {`{"when": {"at": "8s"}, "do": {"isolate": "n1"}}, {"when": {"follows": "end"}, "do": {"crash": "n2"}}`, "", "its time is 10s"},
		"a fault of messages":  {`{"do": {"message": {"kind": "lose", "match": {"type": "text A"}, "after": "26s"}}}`, "can never begin: its time is 26s", ""},
		"a long until":         {`{"do": {"crash": "n1"}, "until": {"after": "60s"}}`, "", ""},
	} {
		sc, target, err := completed(t, c.steps, nil)
		if c.refused != "" || err != nil {
			if c.refused == "" || !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v, want %q", name, err, c.refused)
			}
			continue
		}
		p, err := planned(sc.Steps, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		late := p.late()
		if (len(late) == 0) != (c.warned == "") || len(late) > 0 && (!strings.Contains(late[0].Text, c.warned) || late[0].Kind != model.WarnLate || late[0].Advice == "") {
			t.Errorf("%s: %+v, want %q", name, late, c.warned)
		}
	}
	if _, _, err := completed(t, `{"when": {"at": "25s"}, "do": {"crash": "n1"}}`, func(g *model.Target) { g.Timing.Hang = 6 * time.Second }); err != nil {
		t.Errorf("a workload that may hang for longer: %v", err)
	}
}

// TestATypeThatNoReaderGives is refused wherever a step names one.
func TestATypeThatNoReaderGives(t *testing.T) {
	for steps, refused := range map[string]bool{
		`{"when": {"message": {"type": "resp PING"}}, "do": {"crash": "n1"}}`:                            true,
		`{"do": {"isolate": "n1"}, "until": {"message": {"type": "PING"}}}`:                              true,
		`{"do": {"message": {"kind": "lose", "match": {"type": "json *"}}}}`:                             true,
		`{"when": {"message": {"type": "text NEVER-SEEN"}}, "do": {"crash": "n1"}}`:                      false,
		`{"do": {"message": {"kind": "lose", "match": {"type": "*PING"}}}}`:                              false,
		`{"do": {"message": {"kind": "lose", "match": {"type": "tcp syn :7000"}}}}`:                      false,
		`{"do": {"message": {"kind": "lose", "match": {"type": "te*"}}}}, {"do": {"isolate": "n1"}}`:     false,
		`{"do": {"isolate": "n1"}}, {"when": {"message": {"type": "zk ping"}}, "do": {"isolate": "n1"}}`: true,
	} {
		_, _, err := completed(t, steps, nil)
		if !refused && err != nil || refused && (!errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "step "+map[bool]string{true: "2", false: "1"}[strings.Contains(steps, "zk")]+": no message of target mine has a type like")) {
			t.Errorf("%s: %v", steps, err)
		}
	}
}
