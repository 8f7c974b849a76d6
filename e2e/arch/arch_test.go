package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// room is one package folder: what of ours it may import, and whether it is
// pure (no goroutine, clock, socket, file, logger or global random).
type room struct {
	pure bool
	may  []string
	why  string
}

// rooms is the import table. A folder that is missing here fails the test: a
// new room states its place first.
var rooms = map[string]room{
	"model":                 {pure: true, why: "the shared nouns are a leaf, or everything would depend on everything"},
	"record":                {pure: true, may: []string{"model"}, why: "evidence is data: whoever judges it reads what the run wrote"},
	"record/rundir":         {may: []string{"internal/regular", "model", "record"}, why: "the record is read by tools that have no switch"},
	"record/export":         {may: []string{"model", "record/relation"}, why: "what other tools read is made of the record's tables"},
	"record/relation":       {may: []string{"model", "record", "record/rundir"}, why: "a record is asked without knowing what made it, or who judges it"},
	"controller/of13":       {pure: true, why: "the codec is a leaf, so that it can be fuzzed and replaced alone"},
	"controller":            {may: []string{"controller/of13", "model"}, why: "a session moves messages; what they mean for partitions is flowrules' business"},
	"flowrules":             {pure: true, may: []string{"controller/of13", "model"}, why: "rules are a function of partitions and taps"},
	"flowrules/hostrules":   {pure: true, may: []string{"model"}, why: "what hosts drop is a function of partitions, and no OpenFlow"},
	"inference":             {pure: true, may: []string{"inference/packet", "inference/stream", "inference/classify", "inference/state", "model"}, why: "the pipeline joins the reading rooms and nothing else"},
	"inference/packet":      {pure: true, may: []string{"model"}, why: "making and reading frames needs no stream and no type"},
	"inference/stream":      {pure: true, may: []string{"inference/packet", "model"}, why: "ordering bytes needs no type"},
	"inference/classify":    {pure: true, may: []string{"model"}, why: "types come from bytes alone"},
	"inference/framing":     {pure: true, may: []string{"inference/stream", "model"}, why: "what tells messages apart is a function of streams; who suggests it to whom is above"},
	"inference/state":       {pure: true, may: []string{"model"}, why: "observations come from messages alone"},
	"inference/invariant":   {pure: true, may: []string{"model"}, why: "mining is a function of samples"},
	"inference/pcap":        {may: []string{"model"}, why: "capture files are an edge"},
	"inference/tap":         {may: []string{"model"}, why: "a socket is an edge"},
	"inference/store":       {may: []string{"model"}, why: "the store keeps nouns, not behaviour"},
	"explorer":              {pure: true, may: []string{"explorer/engine", "explorer/policy", "model"}, why: "a search is a function of (results, seed)"},
	"explorer/engine":       {pure: true, may: []string{"model"}, why: "what a run does is a function of (events, scenario); it knows no strategy"},
	"explorer/policy":       {pure: true, may: []string{"model"}, why: "choices are a function of what is known"},
	"explorer/sequence":     {pure: true, may: []string{"model"}, why: "which sequences of faults are run is a function of what runs have shown"},
	"explorer/prune":        {pure: true, may: []string{"explorer/sequence", "model"}, why: "a policy is a function of what runs have shown: the interpreter is given no file, clock or chance, and its steps are counted"},
	"explorer/check":        {pure: true, may: []string{"model", "record"}, why: "a verdict is a function of the record"},
	"explorer/partitionmap": {pure: true, may: []string{"model"}, why: "which messages faults met is a function of records"},
	"explorer/report":       {pure: true, may: []string{"model", "record"}, why: "a report is a function of the record"},
	"testbed":               {may: []string{"flowrules", "testbed/agent", "testbed/fabric", "testbed/hosts", "controller", "testbed/lab", "inference/packet", "inference/tap", "model"}, why: "a testbed is held and cut without knowing what runs on its hosts, or why"},
	"testbed/config":        {may: []string{"model"}, why: "a testbed file can come from anywhere, not only from the lab"},
	"testbed/agent":         {may: []string{"testbed/nft", "testbed/proc", "flowrules/hostrules", "inference/packet", "model"}, why: "the agent counts independently of the controller, so it must not know it"},
	"testbed/nft":           {may: []string{"flowrules/hostrules", "model"}, why: "a table in the kernel knows rules, not who wants them"},
	"testbed/hosts":         {may: []string{"testbed/nft", "flowrules/hostrules", "model"}, why: "keeping hosts cut needs no switch; it meets their agents by an interface"},
	"testbed/disk":          {may: []string{"model"}, why: "holding file operations needs no switch; who decides them is a function that it is given"},
	"testbed/proc":          {may: []string{"model"}, why: "starting a process needs no switch"},
	"testbed/doctor":        {may: []string{"testbed/config", "testbed/agent", "controller", "controller/of13", "flowrules", "inference/tap", "model"}, why: "it looks at a testbed by sessions and agents, and has no part in runs"},
	"testbed/learn":         {may: []string{"testbed/learn/sketch", "controller", "controller/of13", "flowrules", "model"}, why: "it listens where nothing is driven yet, and has no part in runs"},
	"testbed/learn/sketch":  {pure: true, may: []string{"inference/packet", "model"}, why: "a testbed file is a function of what was heard"},
	"testbed/fabric":        {may: []string{"testbed/config", "controller", "controller/of13", "flowrules", "inference/tap", "model"}, why: "the one place where plans meet sessions, and gate ports"},
	"testbed/manual":        {may: []string{"testbed", "flowrules", "model"}, why: "cutting when a user asks needs no campaign: whoever else uses the testbed claims it"},
	"testbed/lab":           {may: []string{"model"}, why: "the lab hands out a testbed and nothing else"},
	"sut":                   {may: []string{"internal/regular", "record/relation", "sut/software", "deploy/targets", "explorer/check", "inference/classify", "model"}, why: "reading a file needs no testbed; it knows the built-in files, the checkers, the dissectors and the relations by name, and puts scripts into the cache"},
	"sut/nodes":             {may: []string{"internal/regular", "testbed", "testbed/disk", "testbed/proc", "record", "record/rundir", "sut", "testbed/config", "sut/software", "explorer/check", "model"}, why: "running a target on hosts needs no switch and no decision; what happens goes to a journal"},
	"sut/software":          {may: []string{"model"}, why: "fetching a release needs to know its name and nothing of what runs it"},
	"campaign":              {may: []string{"internal/regular", "testbed", "testbed/manual", "testbed/doctor", "campaign/cluster", "campaign/judge", "campaign/points", "sut/nodes", "sut/software", "record", "record/export", "record/relation", "record/rundir", "campaign/run", "campaign/search", "sut", "controller", "controller/of13", "testbed/lab", "explorer", "explorer/check", "explorer/partitionmap", "explorer/prune", "explorer/report", "explorer/sequence", "flowrules", "inference/invariant", "inference/store", "model"}, why: "keeps campaigns and joins the rooms below it; whoever asks for them is above"},
	"campaign/cluster":      {may: []string{"internal/regular", "record/rundir", "model"}, why: "handing out runs needs to know neither what a run is nor how it is judged"},
	"campaign/judge":        {may: []string{"internal/regular", "record", "record/relation", "record/rundir", "explorer", "explorer/check", "explorer/engine", "explorer/partitionmap", "explorer/report", "explorer/sequence", "inference/classify", "inference/framing", "inference/invariant", "inference/packet", "inference/pcap", "inference/state", "inference/stream", "model"}, why: "a run is judged from its record alone, so it can be judged again anywhere"},
	"campaign/run":          {may: []string{"internal/cutbook", "testbed/agent", "testbed", "flowrules", "sut/nodes", "record", "record/rundir", "sut", "explorer/check", "explorer/engine", "inference", "inference/pcap", "inference/state", "model"}, why: "one run, from its start to its evidence: it knows no other run, no store, and gives no verdict; of the checks it asks whether the final reads lack something"},
	"campaign/points":       {may: []string{"campaign/judge", "explorer/prune", "explorer/sequence", "model"}, why: "what a search could do is asked of records: nothing is run"},
	"campaign/search":       {may: []string{"explorer", "explorer/sequence", "inference/invariant", "model"}, why: "a search is over scenarios; how they are run is a function that it is given"},
	"campaign/script":       {may: []string{"campaign", "testbed/agent", "testbed/disk", "testbed/proc", "record/rundir", "campaign/run", "sut", "deploy/targets", "model"}, why: "a script is steps on a run that the campaign makes; it knows no switch and no rule, and cannot do what the campaign does not record"},
	"api":                   {may: []string{"internal/cutbook", "api/trust", "api/wire", "model"}, why: "the service behind the API is an interface it declares"},
	"api/wire":              {may: []string{"model"}, why: "what goes over the wire is a promise of its own"},
	"api/trust":             {why: "who is at the other end is told before anything is said"},
	"api/client":            {may: []string{"api/trust", "api/wire", "model"}, why: "the client speaks the API and nothing else"},
	"api/clienttest":        {may: []string{"api/client", "api/trust", "api/wire", "model"}, why: "a test of somebody else's module knows the client and nothing of the daemon"},
	"deploy/grafana":        {why: "a dashboard is data"},
	"deploy/targets":        {why: "a target is data"},
	"internal/cutbook":      {pure: true, may: []string{"model"}, why: "a daemon and a runner count partitions alike"},
	"internal/regular":      {why: "who opens a file for somebody else opens it in one way"},
	"internal/switchtest":   {may: []string{"controller/of13", "model"}, why: "the model switch knows OpenFlow only, so that it cannot agree with our mistakes"},
	"internal/storetest":    {may: []string{"inference/store"}, why: "makes stores for tests"},
	"internal/sim":          {pure: true, may: []string{"explorer", "explorer/engine", "explorer/policy", "model"}, why: "the simulation drives the core as the campaign does"},
	"internal/story":        {may: []string{"model"}, why: "reads stories for tests of runs and of searches"},
	"internal/onecut":       {may: []string{"model"}, why: "says in tests what a scenario of one cut does"},
	"internal/simwrite":     {pure: true, may: []string{"explorer/sequence", "model"}, why: "the simulation names its points as the search does"},
	"internal/labtest":      {may: []string{"testbed/lab", "model"}, why: "a sandbox for tests of the lab"},
	"internal/dashboard":    {may: []string{"deploy/grafana"}, why: "reads the dashboard for tests that ask its queries"},
	"internal/resegment":    {may: []string{"inference/packet", "inference/pcap", "model"}, why: "reads captures and splits their streams into new segments for tests of the reading rooms"},
	"internal/reference":    {why: "all of it is its test: it reads the types of files, and the comments on them"},
	"e2e/targets/gossip":    {why: "a system under test knows nothing of netsplit"},
	"e2e/targets/pipeline":  {why: "a system under test knows nothing of netsplit"},
	"cmd/netsplit":          {may: []string{"*"}, why: "wiring"},
}

// notEverything lists what even the joining rooms must not import.
var notEverything = map[string][]string{
	"cmd/netsplit": {"internal/switchtest", "internal/sim"},
}

// bannedInPure are packages through which time, chance and the world come in.
var bannedInPure = map[string]string{
	"os": "files belong to the edge", "net": "sockets belong to the edge (net/netip is allowed)",
	"log": "a pure room returns what it has to say", "log/slog": "a pure room returns what it has to say",
	"sync": "a pure room has no goroutines", "math/rand": "chance is an argument: math/rand/v2 with a seeded source",
	"os/exec": "processes belong to the edge", "net/http": "sockets belong to the edge", "context": "nothing in a pure room waits",
	"go.starlark.net/lib/time": "a policy reads no clock",
}

// bannedCalls are selector texts no pure room may contain.
var bannedCalls = []string{"time.Now(", "time.After(", "time.Since(", "time.Sleep(", "time.NewTimer(", "time.NewTicker(",
	"rand.Int(", "rand.IntN(", "rand.N(", "rand.Float64(", "rand.Perm(", "rand.Shuffle("}

// goStatement starts a goroutine.
var goStatement = regexp.MustCompile(`(?m)^\s*go [a-zA-Z(].*$|\.Go\(func`)

func TestEveryImportFollowsTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(f))
		if strings.HasSuffix(f, "_test.go") || strings.HasPrefix(dir, "e2e/") && dir != "e2e/targets/gossip" && dir != "e2e/targets/pipeline" || strings.HasPrefix(dir, "deploy/clients/") {
			continue
		}
		r, ok := rooms[dir]
		if !ok {
			t.Errorf("%s: folder %q is not in the import table: give it a place first", f, dir)
			continue
		}
		seen[dir] = true
		ast, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range ast.Imports {
			path := strings.Trim(im.Path.Value, `"`)
			if path == "testing" {
				t.Errorf("%s imports testing: production code does not", f)
			}
			if why, bad := bannedInPure[path]; bad && r.pure {
				t.Errorf("%s imports %s: %s is a pure room: %s", f, path, dir, why)
			}
			ours, isOurs := strings.CutPrefix(path, "netsplit/")
			if !isOurs {
				continue
			}
			if slices.Contains(notEverything[dir], ours) || !slices.Contains(r.may, ours) && !slices.Contains(r.may, "*") {
				t.Errorf("%s imports %s: %s may import %v of ours, because %s", f, ours, dir, r.may, r.why)
			}
		}
		if r.pure {
			src, err := os.ReadFile(filepath.Join(root, f))
			if err != nil {
				t.Fatal(err)
			}
			if started := goStatement.Find(src); started != nil {
				t.Errorf("%s contains %q: %s is a pure room: goroutines are the campaign's", f, started, dir)
			}
			for _, c := range bannedCalls {
				if strings.Contains(string(src), c) {
					t.Errorf("%s contains %q: %s is a pure room: time and chance are the campaign's", f, c, dir)
				}
			}
		}
	}
	for dir := range rooms {
		if !seen[dir] {
			t.Errorf("the import table names %q, which does not exist: the table is stale", dir)
		}
	}
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	docs := map[string][]string{}
	dirs := map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		dir := filepath.Dir(f)
		dirs[dir] = true
		ast, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if ast.Doc != nil {
			docs[dir] = append(docs[dir], f)
		}
	}
	for dir := range dirs {
		if n := len(docs[dir]); n != 1 {
			t.Errorf("%s has %d package comments %v: it must have exactly one", dir, n, docs[dir])
		}
	}
}

func TestNoFileIsOver600Lines(t *testing.T) {
	for _, f := range goFiles(t) {
		b, err := os.ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > 600 {
			t.Errorf("%s has %d lines: split it before it passes 600", f, n)
		}
	}
}

func TestTopLevelFoldersAreTheAgreedOnes(t *testing.T) {
	want := []string{"api", "campaign", "cmd", "controller", "deploy", "e2e", "explorer", "flowrules", "inference", "internal", "model", "record", "scripts", "sut", "testbed"}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		n := e.Name()
		if !e.IsDir() || strings.HasPrefix(n, ".") || n == "bin" || n == "runs" || n == "docs" {
			continue
		}
		if !slices.Contains(want, n) {
			t.Errorf("top-level folder %q is not one of %v", n, want)
		}
	}
}

func TestGoModHasNoReplace(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %q: a replace hides what is built", line)
		}
	}
}

func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root && d.Name() != ".." || d.Name() == "bin" || d.Name() == "runs") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
