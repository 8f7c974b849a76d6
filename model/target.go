package model

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

//go:generate go test netsplit/internal/reference -rewrite

// Target is a system under test, described in one file.
type Target struct {
	// A short name: letters, digits, `-` and `_`.
	// Required. Example: my-system
	Name string `yaml:"name"`
	// One line for people.
	// Example: "My system, 3 nodes"
	Title string `yaml:"title"`
	// A command of plain words whose first line of output, on the first node, is the version; or,
	// where no program has that name, the version itself. Not with `software`.
	// Example: redis-server --version
	Version string `yaml:"version"`
	// Hosts that run server processes.
	// Required. Example: [n1, n2, n3]
	Nodes []NodeID `yaml:"nodes,flow"`
	// Hosts that run workloads.
	// Example: [c1]
	Clients []NodeID `yaml:"clients,flow"`
	// What hosts of a lab have in common with others, for partitions by label. A testbed file has labels of its own.
	// Example: {n1: {rack: a}, n2: {rack: b}}
	Labels map[NodeID]map[string]string `yaml:"labels,omitempty,flow"`
	// Settings that a campaign may change (`--set rate=200`). Templates read `.Args.NAME`.
	Args map[string]TargetArg `yaml:"args,omitempty"`
	// What netsplit fetches to run the target, by release. Without it, `needs` names all.
	Software *Software `yaml:"software,omitempty"`
	// Release is the release of Software that was chosen ("hdfs@3.3.0" chooses
	// 3.3.0, "hdfs" the default one); "" without Software. It does not stand
	// in the file.
	Release string `yaml:"-" json:"release,omitempty"`
	// Programs that must be installed, by name or path, with the Debian package of each.
	// Example: {redis-cli: redis-tools}
	Needs map[string]string `yaml:"needs,omitempty"`

	// What travels on which port.
	Protocols []Protocol `yaml:"protocols"`
	// Servers, started in this order.
	// Required.
	Processes []Process `yaml:"processes"`
	// When the target is ready, and when it has recovered.
	// Required.
	Stable []Condition `yaml:"stable"`
	// When nothing goes on in the background any more. Without it, a run ends when `stable` holds.
	Quiesce *Quiesce `yaml:"quiesce,omitempty"`
	// What makes two [points](policies.md) one.
	Points PointSetting `yaml:"points,omitempty"`
	// What nodes know and should agree on.
	Variables []Variable `yaml:"variables"`
	// Clients that run during the cut. Required unless there are `operations`.
	Workloads []Workload `yaml:"workloads"`
	// Clients that run after recovery, such as final reads.
	Final []Workload `yaml:"final,omitempty"`
	// What clients can do in [scripts](scripted-tests.md): `call: [set, n1, x, v1]`.
	Operations []ClientOperation `yaml:"operations,omitempty"`
	// Times that the system itself uses, for scripts: `sleep: 2 failover`.
	Periods map[string]Period `yaml:"periods,omitempty"`
	// How to see which host has a role, for scripts and message faults: `role: master`.
	Roles map[string]Role `yaml:"roles,omitempty"`
	// What to judge, and what the documentation promises.
	Checks []CheckSpec `yaml:"checks"`
	// A file of [relations](relations.md) beside the target file: checks of your own over the record of a run, in SQL.
	// Example: relations.yaml
	Relations string `yaml:"relations,omitempty"`
	// RelationsText is what that file says. It does not stand in the target file.
	RelationsText string `yaml:"-" json:"relationsText,omitempty"`
	// Log lines that are failures.
	Logs LogPatterns `yaml:"logs"`
	// Failures that somebody described before; reports name them.
	Known []KnownFailure `yaml:"known,omitempty"`
	// How long the parts of a run take.
	// Required.
	Timing Timing `yaml:"timing"`
	// What runs copy from a cluster that was set up once.
	Template TemplateSetting `yaml:"template,omitempty"`
	// What it means to isolate a node.
	Isolation IsolationSetting `yaml:"isolation"`
	// Memory that all its processes take together, in MB. A run on a machine with less free is warned of.
	// Default: 0, not stated. Example: 3000
	Memory int `yaml:"memory,omitempty"`
	Rights `yaml:",inline"`
	// Processes, workloads and command probes find every host by name in `/etc/hosts`, and
	// each has its host's name.
	// Default: false. Example: true
	Hostnames bool `yaml:"hostnames,omitempty"`
}

// TargetArg is a setting of a target.
type TargetArg struct {
	// Its value where a campaign does not set it, as text.
	// Example: "70"
	Default string `yaml:"default"`
	// What it does. Name the unit, and say so if it is a timeout: netsplit warns of limits that are
	// equal to one.
	// Example: writes per second
	Help string `yaml:"help"`
}

// IsolationSetting says what isolating a node means for this target.
type IsolationSetting struct {
	// An isolated node is cut from clients too, not only from other nodes. Without it, clients
	// go on using it: only then can it acknowledge writes alone and lose them.
	// Default: false. Example: true
	Clients bool `yaml:"clients"`
}

// Software says which releases of a product the target runs on. `netsplit target get
// NAME@RELEASE` fetches one with `mvn`, `pip` and `go`; a campaign fetches what is missing by itself.
// Templates read `.Lib`, `.Files`, `.Java` and `.Version`, so one file serves all releases.
type Software struct {
	// The product's name in the catalogue.
	// Required. Example: cassandra
	Product string `yaml:"product"`
	// The release that runs where none is named.
	// Required. Example: 3.3.0
	Default string `yaml:"default"`
	// The releases that the file is made for: `hdfs@3.3.0` names one.
	// Required. Example: [2.10.0, 3.3.0]
	Versions []string `yaml:"versions,flow"`
	// A [catalogue](#catalogue-file) beside the target file.
	// Default: the catalogue that comes with netsplit. Example: mine.yaml
	Catalog string `yaml:"catalog,omitempty"`
}

// TemplateSetting says what a run copies from a cluster that was set up once, became stable and
// was stopped in order. Another release, setting or script makes another template. If a server ends by
// itself meanwhile or must be killed, there is no template, and every run starts from nothing.
//
// `.Dir` is another path in each run. A server that stores it in what is kept needs one fixed
// path: with `hostnames: true` a process has mounts of its own, so that
// `[sh, -c, 'mount --bind "$0" /mnt && exec my-server --data /mnt/data', '{{.Dir}}']` works.
type TemplateSetting struct {
	// What is copied of each host's directory, as glob patterns, with owners and modes. Keep
	// what makes the servers a cluster, and nothing that holds a run's writes.
	// Default: nothing. Example: [data, 'conf/*']
	Keep []string `yaml:"keep,omitempty,flow"`
	// Start the target once even if nothing is kept. While `.Building` is true, processes may
	// leave files in `.Cache` that make later starts faster; afterwards `.Cache` must not change.
	// Default: false. Example: true
	Warm bool `yaml:"warm,omitempty"`
}

// KnownFailure describes a failure that somebody reported before. Reports name it; verdicts and
// the search do not change, except where `documented` applies.
type KnownFailure struct {
	// The id of its report.
	// Required. Example: CASSANDRA-2115
	ID string `yaml:"id"`
	// One line for people.
	// Example: a removed node comes back
	Title string `yaml:"title"`
	// The check that finds it.
	// Default: any. Example: process-died
	Check string `yaml:"check,omitempty"`
	// A regular expression over the failure's signature, summary and details, a line each. Prefer the text
	// that the system logs.
	// Required. Example: 'NullPointerException.*handleMajorStateChange'
	Match string `yaml:"match"`
	// `symptom`: only the symptom is known, so what matches may be another failure; the report says so.
	// Example: symptom
	By string `yaml:"by,omitempty"`
	// Releases that it was reported for; `*` matches any text.
	// Default: any. Example: [3.3.0]
	Versions []string `yaml:"versions,omitempty,flow"`
	// Releases whose maintainers admit it. There the failure counts as documented. Not with `by`.
	// Example: [2.10.*]
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

// When names settings and, of each, the values under which something applies: `{acks: [all]}`. All
// named settings must match. Of a setting that is a list (`data,lock`) one word is enough.
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

// Process is a server process. Each of its hosts starts it with an empty directory of its own
// (`.Dir`). It stays in the foreground and writes only below that directory.
type Process struct {
	// A unique name; `netsplit node stop NAME HOST` uses it.
	// Required. Example: server
	Name string `yaml:"name"`
	// Where it runs.
	// Required. Example: [n1, n2, n3]
	Hosts []NodeID `yaml:"hosts,flow"`
	// Files to write into `.Dir` before the start: content by relative name. Templates.
	// Example: {my.conf: "dir {{.Dir}}"}
	Files map[string]string `yaml:"files,omitempty"`
	// Program and arguments, a word each; no shell. Template.
	// Required. Example: [my-server, '{{.Dir}}/my.conf']
	Command []string `yaml:"command,flow"`
	// Variables added to the environment. Templates.
	// Example: {JAVA_HOME: '{{.JavaHome}}'}
	Env map[string]string `yaml:"env,omitempty"`
	// Conditions of `stable` that must hold before it starts.
	// Example: [replicated]
	After []string `yaml:"after,omitempty,flow"`
	// Conditions of `stable` that must hold on one host before it starts on the next. Without it all hosts
	// start at once. Where the first server becomes the leader, runs then start alike and fewer
	// clean runs are needed.
	// Example: [serving]
	InTurn []string `yaml:"in_turn,omitempty,flow"`
	// Ending by itself with status 0 is no failure.
	// Default: false. Example: true
	MayExit bool `yaml:"may_exit,omitempty"`
	// A set-up command (format a disk, create an account): it must end with status 0 before the
	// next process starts. Runs that start from a template skip it.
	// Default: false. Example: true
	Once bool `yaml:"once,omitempty"`
	// The run does not start it; a workload does (`netsplit node start`).
	// Default: false. Example: true
	Manual bool `yaml:"manual,omitempty"`
	Rights `yaml:",inline"`
}

// Rights are what a program of the target may do on the machine. Without them it runs as
// user `netsplit-target` (a number that no account has) without capabilities, and no program
// that it starts can gain any. Those of a process replace those of the target; workloads,
// operations and probes have those of the target.
//
// The user owns the host's directory, `.Work` and, while a template is made, `.Cache`. `HOME` is
// the host's directory. Below folders that only their owner may enter, the process sees only what
// netsplit gives it (its directories, the target's folder, programs, software), even as root; that part of the file system is
// read-only. A program that ends with "permission denied" is reported with its user and the keys
// that give it more. `processes.jsonl` of a run records the rights of each process. On a host that is reached
// by ssh, the user that logs in there counts.
type Rights struct {
	// The user that it runs as; `root` has all capabilities unless some are listed. See [rights](#rights).
	// Default: a user without rights. Example: redis
	User string `yaml:"user,omitempty" json:"user,omitempty"`
	// All capabilities(7) that it has, in lower case without CAP_. See [rights](#rights).
	// Default: none. Example: [net_bind_service]
	Capabilities []string `yaml:"capabilities,omitempty,flow" json:"capabilities,omitempty"`
}

// Workload is a program on a client host that uses the system. It prints its operation
// [history](#history) on standard output, and nothing else. It ends by itself `.WorkloadFor` after its start,
// or when its standard input ends, after finishing the operation it is in.
//
// A workload may act as an operator: `{{.Netsplit}} node stop|start|kill|pause|resume PROCESS HOST`.
// `stop` sends SIGTERM, and SIGKILL after 20 s, and returns when the process has ended; `start`
// returns when it was started, which is before it serves. A process that ends because of it has not died.
//
// The workloads in `final` run when the target has recovered or `recover` is over. They wait until the service
// answers, read through every node, and print one line for each key they found, without `invoke`, and one that says that
// the list is whole:
//
//	{"process":0,"type":"ok","f":"final-read","key":"a","value":"1","time":31200000000,"node":"n1"}
//	{"process":0,"type":"ok","f":"final-read-done","value":"1","time":31201000000,"node":"n1"}
type Workload struct {
	// A unique name.
	// Required. Example: writer
	Name string `yaml:"name"`
	// The host it runs on.
	// Required. Example: c1
	Host NodeID `yaml:"host"`
	// Program and arguments, a word each; no shell. Template.
	// Required. Example: [python3, '{{.TargetDir}}/client.py']
	Command []string `yaml:"command,flow"`
	// Variables added to the environment, which has `NETSPLIT_RUN_START`, `NETSPLIT_CONTROL` and, for
	// `final`, `NETSPLIT_LOOK` (1 or 2). Templates.
	// Example: {RATE: '{{.Args.rate}}'}
	Env map[string]string `yaml:"env,omitempty"`
	// The settings under which it runs: see [when](#when).
	// Example: {workload: [writes]}
	When When `yaml:"when,omitempty,flow"`
}

// CheckSpec turns a check on. It may be listed twice with other settings or another `when`,
// such as once as `broken` and once as `documented`. A check whose operations do not occur in a run has nothing to judge
// and says so; a run in which no check had anything to judge is unknown.
//
// What an operation without an answer may have done is no evidence in any check. A failed operation
// is legal unless `operations` judges it.
//
// If the first final reads lack something, the run waits until `timing.repair` after heal (at least 3 s) and
// runs `final` again. What is still missing is lost. What appeared is late, and a failure only beyond the check's `late`.
// If the second reads fail, the run is unknown.
type CheckSpec struct {
	// One of the [checks](#checks-and-their-settings).
	// Required. Example: lost-acknowledged-writes
	Name string `yaml:"name"`
	// `broken`: the documentation promises otherwise, or it is wrong without a word of it. `documented`: it admits the failure, which is then listed
	// and fails no gate, unless it exceeds a bound that the user states.
	// Required. Example: broken
	Class FailureClass `yaml:"class"`
	// The document, its section and their words as they stand, mistakes included; (..) stands for words left out. Empty:
	// no document says it, as of a bug that a server logs. Required with `documented`.
	// Example: "README, Writes: An acknowledged write is never lost."
	Quote string `yaml:"quote"`
	// Settings of the check. Templates.
	// Example: {leader: redis_master}
	With map[string]string `yaml:"with,omitempty"`
	// The settings under which the promise holds: see [when](#when).
	// Example: {acks: [all]}
	When When `yaml:"when,omitempty,flow"`
}

// LogPatterns are regular expressions over the lines that server processes print. A line that
// matches `fatal` and is not allowed is a failure of check `fatal-log`, together with its stack trace. `^` and `$` are the ends
// of a line; colours are removed first. `fatal` does not see the folders that the records, the cache and the target file are in.
type LogPatterns struct {
	// Lines that are failures.
	// Example: ['^FATAL ']
	Fatal []string `yaml:"fatal,omitempty"`
	// Exceptions: a match in the line or in its stack trace.
	// Example: ['connection reset by peer']
	Allow []string `yaml:"allow,omitempty"`
	// Exceptions that hold only after a disturbance.
	Disturbed []DisturbedLine `yaml:"disturbed,omitempty"`
	// Log files to read like standard output, as glob patterns below the host's directory.
	// Example: ['logs/*.log']
	Files []string `yaml:"files,omitempty,flow"`
	// How many lines after a match can belong to it: stack traces, and lines with the same time
	// in microseconds (Erlang).
	// Default: 60. Example: 100
	Context int `yaml:"context,omitempty"`
}

// DisturbedLine is a log line that is no failure while a cut holds or a server is stopped, killed, paused or
// gone, and for some time after the heal or the start.
type DisturbedLine struct {
	// As in `allow`.
	// Required. Example: 'no quorum'
	Match string `yaml:"match"`
	// How long after the heal or the start.
	// Required. Example: 20s
	Within time.Duration `yaml:"within"`
}

// Timing is how long the parts of a run take.
type Timing struct {
	// The longest time from the start to `stable`. Allow several times what a start takes: a run that does not become stable is unknown.
	// Required. Example: 30s
	Settle time.Duration `yaml:"settle"`
	// How long the workloads run.
	// Required. Example: 9s
	Workload time.Duration `yaml:"workload"`
	// No fault of a search begins later than this into the workload, so that clients see the recovery.
	// Default: the end of the workload. Example: 5s
	LastFault time.Duration `yaml:"last_fault,omitempty"`
	// The longest cut. It should differ from the system's own timeouts.
	// Required. Example: 6s
	MaxCut time.Duration `yaml:"max_cut"`
	// The longest time from heal until `stable` and the invariants hold again. Allow at least twice what a
	// healthy system needs.
	// Required. Example: 25s
	Recover time.Duration `yaml:"recover"`
	// How much longer than `workload` a workload may take before it counts as hung. Allow more than its longest operation.
	// Default: 5s. Example: 10s
	Hang time.Duration `yaml:"hang,omitempty"`
	// The longest time that each of `final` may take.
	// Default: 30s. Example: 60s
	Final time.Duration `yaml:"final,omitempty"`
	// How often a run checks whether its cut or heal is due.
	// Default: 50ms. Example: 20ms
	Tick time.Duration `yaml:"tick"`
	// How long after heal the system's own repair (a merge, hints) may take; what final reads still lack then is lost.
	// Default: `recover`. Example: 5s
	Repair time.Duration `yaml:"repair,omitempty"`
}
