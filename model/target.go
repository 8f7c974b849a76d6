package model

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Target is a system under test, described in one file. Strings marked
// (template) are text/template templates over the values that package
// sut documents: .Host, .IP, .IPs, .Dir, .TargetDir, .Args, .Seed,
// .RunStart.
type Target struct {
	Name    string `yaml:"name"`
	Title   string `yaml:"title"`
	Version string `yaml:"version"` // command whose first line of output is the version, or plain text
	// Nodes run server processes, Clients run workloads. Both are hosts.
	Nodes   []NodeID `yaml:"nodes,flow"`
	Clients []NodeID `yaml:"clients,flow"`
	// Args are the settings a campaign may change, with their defaults.
	Args map[string]TargetArg `yaml:"args,omitempty"`
	// Software names what must be fetched before the target can start; nil:
	// all of it comes from Debian packages (Needs).
	Software *Software `yaml:"software,omitempty"`
	// Release is the release of Software that was chosen ("hdfs@3.3.0" chooses
	// 3.3.0, "hdfs" the default one); "" without Software. It does not stand
	// in the file.
	Release string `yaml:"-" json:"release,omitempty"`
	// Needs names the programs that must be installed, with the Debian package
	// that has them.
	Needs map[string]string `yaml:"needs,omitempty"`

	Protocols []Protocol  `yaml:"protocols"`
	Processes []Process   `yaml:"processes"`
	Stable    []Condition `yaml:"stable"` // all must hold before a run starts and after it heals
	Variables []Variable  `yaml:"variables"`
	Workloads []Workload  `yaml:"workloads"`
	Final     []Workload  `yaml:"final,omitempty"` // run after recovery, e.g. final reads
	// Operations, Periods and Roles are for scripts: what clients can do, the
	// times the target goes by, and how to see who has a role now.
	Operations []ClientOperation `yaml:"operations,omitempty"`
	Periods    map[string]Period `yaml:"periods,omitempty"`
	Roles      map[string]Role   `yaml:"roles,omitempty"`
	Checks     []CheckSpec       `yaml:"checks"`
	Logs       LogPatterns       `yaml:"logs"`
	Known      []KnownFailure    `yaml:"known,omitempty"`
	Timing     Timing            `yaml:"timing"`
	Template   TemplateSetting   `yaml:"template,omitempty"`
	Isolation  IsolationSetting  `yaml:"isolation"`
	// Memory is what the processes of one run take together, in MB; 0: not
	// stated. A run that has less is not worth starting.
	Memory int `yaml:"memory,omitempty"`
	// Rights are those of whatever the target runs that asks for no others.
	Rights `yaml:",inline"`
	// Hostnames: processes, workloads and command probes find every host of
	// the testbed by name in /etc/hosts, and their own name is their host's.
	Hostnames bool `yaml:"hostnames,omitempty"`
}

// TargetArg is a setting of a target.
type TargetArg struct {
	Default string `yaml:"default"`
	Help    string `yaml:"help"`
}

// IsolationSetting says what isolating a node means for this target.
type IsolationSetting struct {
	// Clients: the node is cut from clients too, not only from its peers.
	Clients bool `yaml:"clients"`
}

// Software says which releases of a product a target runs on. The catalogue of
// artifacts (sut/software) says what a release consists of.
type Software struct {
	Product  string   `yaml:"product"`       // name in the catalogue, e.g. "cassandra"
	Default  string   `yaml:"default"`       // release to run when none is named
	Versions []string `yaml:"versions,flow"` // releases the target file is made for
	// Catalog is a catalogue file beside the target file, for a product that
	// does not come with netsplit.
	Catalog string `yaml:"catalog,omitempty"`
}

// TemplateSetting says what a run may copy from a cluster that settled once:
// the hosts' directories as they were after an orderly stop. Processes with
// Once are then not run again.
type TemplateSetting struct {
	// Keep are glob patterns, relative to a host's directory, of what is
	// copied: "data", "conf/*". None: every run starts from empty directories.
	Keep []string `yaml:"keep,omitempty,flow"`
	// Warm starts the cluster once and stops it in order before the copy is
	// made, even if nothing is kept: programs may leave files in .Cache (class
	// data archives) while .Building is true.
	Warm bool `yaml:"warm,omitempty"`
}

// KnownFailure is a signature of a failure somebody described before. It names
// findings in reports; no search is steered by it.
type KnownFailure struct {
	ID    string `yaml:"id"` // e.g. "CASSANDRA-2115"
	Title string `yaml:"title"`
	// Check is the name of the check that shows it; "" any.
	Check string `yaml:"check,omitempty"`
	// Match is a regular expression over the failure's signature, summary and
	// details, each a line.
	Match string `yaml:"match"`
	// By says what Match was made from: "", the words of the report itself, or
	// KnownBySymptom.
	By string `yaml:"by,omitempty"`
	// Versions are releases it was described for; none: any.
	Versions []string `yaml:"versions,omitempty,flow"`
	// Documented are releases of which the system's own tracker admits it: there it
	// breaks no promise. In others it is only named.
	Documented []string `yaml:"documented,omitempty,flow"`
}

// KnownBySymptom is KnownFailure.By where only the symptom of the failure is known:
// what matches looks like it, and may be another.
const KnownBySymptom = "symptom"

// KnownAs says in words what a failure that has the signature of a described one
// is; by is KnownFailure.By.
func KnownAs(id, by string) string {
	if by == KnownBySymptom {
		return "looks like " + id + ", by its symptom"
	}
	return "known as " + id
}

// DescribedFor says whether a release is among Versions, which may hold "*".
func (k *KnownFailure) DescribedFor(release string) bool {
	return len(k.Versions) == 0 || among(k.Versions, release)
}

// DocumentedFor says whether a release is among Documented, which may hold "*".
func (k *KnownFailure) DocumentedFor(release string) bool { return among(k.Documented, release) }

func among(patterns []string, release string) bool {
	return slices.ContainsFunc(patterns, func(v string) bool {
		ok, err := path.Match(v, release)
		return err == nil && ok
	})
}

// Protocol tells which dissector reads a port. Types still come from payload
// bytes: a dissector that does not recognise them says unknown.
type Protocol struct {
	Port      uint16 `yaml:"port"`
	Transport string `yaml:"transport"` // "tcp" or "udp"
	// Dissector is the name of a reader (package inference/classify), such as
	// "resp", "text" (lines over TCP, one datagram each over UDP), "json", or
	// "fallback" (direction, length class, first token).
	Dissector string `yaml:"dissector"`
	// Frames says how dissector "frames" finds messages and their types.
	Frames *Framing `yaml:"frames,omitempty"`
	// Lines says of which lines dissector "text" is to know more.
	Lines []Line `yaml:"lines,omitempty"`
	// When says under which settings it is spoken; Optional: even then not in
	// every run. A run without it shows no mistake of the target file.
	When     When `yaml:"when,omitempty,flow"`
	Optional bool `yaml:"optional,omitempty"`
}

// Framing describes a binary protocol whose messages tell their length.
type Framing struct {
	// Length is the number that, together with its Plus, is the length of a
	// message from its first byte on. Datagrams have none.
	Length *Place `yaml:"length,omitempty"`
	// Type are the numbers that make the type, as many as a message is long
	// enough for; Answer the same for what comes from the side that was connected
	// to (a datagram: from the port), if that is laid out otherwise.
	Type   []Place  `yaml:"type,omitempty"`
	Answer *[]Place `yaml:"answer,omitempty"`
	// Correlation tells which message an answer answers, where messages have an id.
	Correlation *Correlation `yaml:"correlation,omitempty"`
	// Fields are read by variables.
	Fields map[string]Place `yaml:"fields,omitempty"`
	// First are messages of another layout with which a connection begins.
	First []First `yaml:"first,omitempty"`
}

// Correlation is where a message has the id that the answer to it repeats. An
// answer has the type of what it answers.
type Correlation struct {
	Request Place `yaml:"request"` // in messages of the side that connected
	Answer  Place `yaml:"answer"`  // in those of the other one
}

// First is a message that comes before those that Framing describes: a start-up
// message, a preface. A direction begins with as many as there are.
type First struct {
	// Name makes the type.
	Name string `yaml:"name"`
	// Answer: the side that was connected to sends it.
	Answer bool `yaml:"answer,omitempty"`
	// Begins are its first bytes, in hex.
	Begins string `yaml:"begins"`
	// Length is as in Framing, or Size how long all of them are.
	Length *Place `yaml:"length,omitempty"`
	Size   int    `yaml:"size,omitempty"`
}

// Line describes lines of a text protocol that tell more than their first word.
type Line struct {
	// Match is a regular expression. Its group length is how many bytes follow
	// the line and belong to it, together with Plus; its group type is a word
	// that makes the type, too.
	Match string `yaml:"match"`
	Plus  int    `yaml:"plus,omitempty"`
	// Fields are read by variables; places count from behind the line's end.
	Fields map[string]Place `yaml:"fields,omitempty"`
}

// Place is where in a message something is.
type Place struct {
	At    int    `yaml:"at"`              // bytes before it
	Size  int    `yaml:"size,omitempty"`  // bytes; 0 is 1
	Order string `yaml:"order,omitempty"` // of a number's bytes: "big" (default) or "little"
	Mask  string `yaml:"mask,omitempty"`  // which bits of a number: 0x1c
	Plus  int    `yaml:"plus,omitempty"`  // Framing.Length: bytes that it does not count
	As    string `yaml:"as,omitempty"`    // a field: "number" (default), "hex", "text"
}

// When names settings, and of each the values under which something belongs to
// a run; none: under all. A setting that is a list ("data,lock") has each of
// its words.
type When map[string][]string

// Under says whether the settings of a run, as expanded, are those.
func (w When) Under(args map[string]TargetArg) bool {
	for name, values := range w {
		if !slices.ContainsFunc(strings.Split(args[name].Default, ","), func(word string) bool { return slices.Contains(values, strings.TrimSpace(word)) }) {
			return false
		}
	}
	return true
}

// String is "fs hdfs and workload data or lock".
func (w When) String() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		out = append(out, name+" "+strings.Join(w[name], " or "))
	}
	return strings.Join(out, " and ")
}

// Process is a server process that runs on each of its hosts.
type Process struct {
	Name    string            `yaml:"name"`
	Hosts   []NodeID          `yaml:"hosts,flow"`
	Files   map[string]string `yaml:"files,omitempty"` // (template) by file name in .Dir
	Command []string          `yaml:"command,flow"`    // (template)
	Env     map[string]string `yaml:"env,omitempty"`   // (template)
	// After names conditions of Target.Stable that must hold before it starts.
	After []string `yaml:"after,omitempty,flow"`
	// InTurn names conditions of Target.Stable that must hold on one of its
	// hosts before it starts on the next. Where the first one to start becomes
	// the leader, runs begin alike, and their samples add up.
	InTurn []string `yaml:"in_turn,omitempty,flow"`
	// MayExit: ending by itself with status 0 is not a failure.
	MayExit bool `yaml:"may_exit,omitempty"`
	// Once: it is a command of the set-up that runs to its end, with status 0,
	// before the next process starts; a run from a template skips it.
	Once bool `yaml:"once,omitempty"`
	// Manual: it is not started by the run but by a workload (netsplit node
	// start).
	Manual bool `yaml:"manual,omitempty"`
	Rights `yaml:",inline"`
}

// Rights are what something of a target may do on the machine.
type Rights struct {
	// User is the user that it runs as; "": one without any rights. root has all
	// capabilities where none are listed.
	User string `yaml:"user,omitempty" json:"user,omitempty"`
	// Capabilities are all that it has (capabilities(7), in lower case and without
	// CAP_), and all that a program it starts can get.
	Capabilities []string `yaml:"capabilities,omitempty,flow" json:"capabilities,omitempty"`
}

// Probe reads text from a host out of band. Exactly one of Command, TCP and
// HTTP is set.
type Probe struct {
	Command []string `yaml:"command,omitempty,flow"` // (template) run on the host
	TCP     string   `yaml:"tcp,omitempty"`          // address on the host, e.g. 127.0.0.1:6379
	Send    string   `yaml:"send,omitempty"`         // text sent after connecting (TCP)
	// Until ends a TCP answer: the answer is complete when it matches. Without
	// it the answer ends when the peer closes or after 20 ms of silence.
	Until string        `yaml:"until,omitempty"` // regular expression
	HTTP  string        `yaml:"http,omitempty"`  // (template) URL
	Limit time.Duration `yaml:"limit,omitempty"` // give up after; default 1s
}

// Check tells of everything that is wrong with a probe: bad gets the key that it is
// about, "" for the whole. What is still a template is left for when it is filled in.
func (p Probe) Check(bad func(key, format string, args ...any)) {
	n := 0
	for _, set := range []bool{len(p.Command) > 0, p.TCP != "", p.HTTP != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		bad("", "a probe has exactly one of command, tcp and http; this one has %d", n)
	}
	filled := func(s string) bool { return s != "" && !strings.Contains(s, "{{") }
	if len(p.Command) > 0 && p.Command[0] == "" {
		bad("command", "its first word is empty: name the program")
	}
	if p.TCP == "" && (p.Send != "" || p.Until != "") {
		bad("", "send and until go with tcp only")
	}
	if filled(p.TCP) {
		if a, err := netip.ParseAddrPort(p.TCP); err != nil || a.Port() == 0 {
			bad("tcp", "%q: want an address and port on the host, such as 127.0.0.1:6379", p.TCP)
		}
	}
	if filled(p.HTTP) {
		if u, err := url.Parse(p.HTTP); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad("http", "%q: want a URL on the host, such as http://127.0.0.1:8080/status", p.HTTP)
		}
	}
	if filled(p.Until) {
		if _, err := regexp.Compile(p.Until); err != nil {
			bad("until", "%v", WrongPattern(err))
		}
	}
	if p.Limit < 0 {
		bad("limit", "limit %v: give a time ahead, as in 1s", p.Limit)
	}
}

// WrongPattern tells the writer of a pattern what package regexp says against it.
func WrongPattern(err error) error {
	if e, ok := err.(*syntax.Error); ok {
		err = fmt.Errorf("%s: `%s`", e.Code, e.Expr)
	}
	return fmt.Errorf("bad regular expression (%w): see https://pkg.go.dev/regexp/syntax", err)
}

// Condition is a probe whose answer must match, on every named host.
type Condition struct {
	Name  string   `yaml:"name"`
	Hosts []NodeID `yaml:"hosts,flow"`
	Probe Probe    `yaml:"probe"`
	// Match is a regular expression (template) the answer must match. Where it
	// has a group named "same", that group must be equal on all hosts.
	Match string `yaml:"match"`
}

// Variable is a named piece of node metadata. Only variables of one kind are
// compared.
type Variable struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	// As normalises values: "" (as is), "host" (an IP address, or address and
	// port, becomes the name of the host that owns it) or "ordinal" (ids that
	// differ from run to run become #1, #2, … in the order in which the kind's
	// values first appear).
	As string `yaml:"as,omitempty"`
	// Same names values that mean the same on different nodes: KILLED: FINISHED
	// reads the first as the second, before As.
	Same map[string]string `yaml:"same,omitempty"`
	// Gone are the values with which a node says of itself, name[node]@node, that
	// it is no member any more. What it knows of others from then on is nothing
	// that recovery waits for.
	Gone []string `yaml:"gone,flow,omitempty"`
	// MaxAge is the age beyond which an observation is stale, not evidence.
	MaxAge  time.Duration `yaml:"max_age"`
	Sources []VarSource   `yaml:"sources"`
	// When says under which settings a run shows it.
	When When `yaml:"when,omitempty,flow"`
}

// VarSource says where a variable shows: in a field of a message (Type,
// Field), or in the answer of a probe (Probe).
type VarSource struct {
	// Type is a pattern over message types: "*" matches any text.
	Type string `yaml:"type,omitempty"`
	// Field names the dissector field; "" means no field is read and Value
	// gives the value.
	Field string `yaml:"field,omitempty"`
	// Where are further fields that a message must have, each matched by a regular
	// expression: it is of this Raft group, or reports no error.
	Where map[string]string `yaml:"where,omitempty,flow"`
	// Of says whose variable it is: "sender" (default) or "receiver".
	Of string `yaml:"of,omitempty"`
	// Regexp is applied to the field or answer. Group "value" is the value
	// (without such a group: the whole match); group "about", if there is one,
	// makes every match an instance name[about]; group "epoch" beside it tells
	// instances of different starts of the system apart, name[about#2].
	Regexp string `yaml:"regexp,omitempty"`
	// Value replaces the matched value. "$sender" and "$receiver" stand for
	// the hosts of the message, "$self" for the host the variable is of.
	Value string `yaml:"value,omitempty"`
	// About is whom the value is about where the text does not tell: a text,
	// or "$sender", "$receiver", "$self" as in Value. Not beside a group about.
	About string `yaml:"about,omitempty"`
	// AbsentFor lists values of about: those that do not occur in a text that
	// was read are observed as Absent. "nodes" stands for all nodes, "named" for
	// whatever a source of the variable has named in the run so far: for things
	// that come and go.
	AbsentFor string `yaml:"absent_for,omitempty"`
	// Tells says when a message source shows a value: "" from time to time, or
	// TellsChanges.
	Tells string `yaml:"tells,omitempty"`
	// Optional: what it shows does not happen in every run, or on every host, so
	// a run in which it shows no value is no sign of a mistake in it.
	Optional bool `yaml:"optional,omitempty"`

	Probe *Probe        `yaml:"probe,omitempty"`
	Hosts []NodeID      `yaml:"hosts,omitempty,flow"` // probe: where; default all nodes
	Every time.Duration `yaml:"every,omitempty"`      // probe: interval
}

// TellsChanges is what a source tells that shows every change of a variable as it
// happens, and need not show it again: a commit, the result of an election. What it
// showed last is the value until it shows another one, however long that takes, or the
// node's server is stopped or started.
const TellsChanges = "changes"

// Workload is a process on a client host. It prints the operation history
// (Operation, JSON lines) on standard output and ends by itself when it reads
// end of file on standard input or after Timing.Workload.
type Workload struct {
	Name    string            `yaml:"name"`
	Host    NodeID            `yaml:"host"`
	Command []string          `yaml:"command,flow"` // (template)
	Env     map[string]string `yaml:"env,omitempty"`
	// When says under which settings it runs.
	When When `yaml:"when,omitempty,flow"`
}

// CheckSpec turns on a checker with its settings.
type CheckSpec struct {
	Name string `yaml:"name"` // see explorer/check
	// Class is what a failure of it is: broken or documented.
	Class FailureClass `yaml:"class"`
	// Quote is the sentence of the documentation that promises or admits it.
	Quote string            `yaml:"quote"`
	With  map[string]string `yaml:"with,omitempty"`
	// When says under which settings it is judged: a promise may depend on them.
	When When `yaml:"when,omitempty,flow"`
}

// LogPatterns are regular expressions over the lines that processes print.
type LogPatterns struct {
	Fatal []string `yaml:"fatal,omitempty"` // a match is a failure
	Allow []string `yaml:"allow,omitempty"` // unless one of these matches it or a line of its stack trace
	// Disturbed are allowed only where a disturbance is the reason.
	Disturbed []DisturbedLine `yaml:"disturbed,omitempty"`
	// Files are glob patterns, relative to a host's directory, of log files
	// that are read like what processes print, from when they appear.
	Files []string `yaml:"files,omitempty,flow"`
	// Context is how many lines after a match belong to it if they continue
	// it: stack traces ("\tat ", "Caused by:"). Default 60.
	Context int `yaml:"context,omitempty"`
}

// DisturbedLine is a line that is no failure while hosts do not reach others or
// are not there (a cut, a server that a workload stopped, killed or paused, or
// that ended), and until Within after that.
type DisturbedLine struct {
	Match  string        `yaml:"match"` // as of LogPatterns.Allow
	Within time.Duration `yaml:"within"`
}

// Timing of a run.
type Timing struct {
	Settle   time.Duration `yaml:"settle"`   // limit for Stable after the start
	Workload time.Duration `yaml:"workload"` // length of the workload
	MaxCut   time.Duration `yaml:"max_cut"`  // longest partition
	Recover  time.Duration `yaml:"recover"`  // limit for Stable and the invariants after heal
	// Hang is how much longer than Workload a workload may take before it
	// counts as hung; default 5s. Final bounds the final workloads; default 30s.
	Hang  time.Duration `yaml:"hang,omitempty"`
	Final time.Duration `yaml:"final,omitempty"`
	Tick  time.Duration `yaml:"tick"` // default 50ms
	// Repair is how long after heal the target's own repair may take (a merge, hints,
	// re-replication) until what final reads lack is lost; default Recover.
	Repair time.Duration `yaml:"repair,omitempty"`
}
