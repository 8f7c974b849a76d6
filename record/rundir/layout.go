package rundir

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"netsplit/internal/regular"
)

// Names of the files of a run directory.
const (
	MetaFile      = "meta.json"       // model.RunMeta
	TargetFile    = "target.json"     // model.Target as it was used
	TestbedFile   = "testbed.json"    // model.Testbed
	EventsFile    = "events.jsonl"    // model.Event, numbered once, on arrival
	DecisionsFile = "decisions.jsonl" // model.Decision, except plain passes while nothing is cut
	RulesFile     = "rules.jsonl"     // what was asked of the switch, and its answers
	HistoryFile   = "history.jsonl"   // Entry: a workload's operation history
	ProcessesFile = "processes.jsonl" // record.Started: what each process runs as
	LogLinesFile  = "loglines.jsonl"  // LogLine that matched a fatal pattern
	LinesFile     = "lines.jsonl"     // LogLine: all that processes printed or wrote to log files
	PacketsFile   = "packets.pcapng"  // every packet with the verdict as its comment
	EvidenceFile  = "evidence.json"   // Evidence: exits, recovery, proof, why incomplete
	SummaryFile   = "summary.json"    // model.RunSummary
	ReportFile    = "report.html"
	MapFile       = "map.json"     // []model.MapRow; of a campaign's folder: model.PartitionMap
	ProfileFile   = "profile.json" // model.Profile; Step is a place in the scenario
	MetricsFile   = "metrics.json" // model.RunMetrics, of a run that a runner made
	CausesFile    = "causes.json"  // of a campaign's folder: []model.Cause
	AccountFile   = "search.json"  // of a campaign's folder: model.Account
	PanicFile     = "panic.txt"    // where netsplit itself failed in the run, and at which frame
	LogsDir       = "logs"         // <host>-<process>.log, what it printed; <host>/…, its log files
)

// Records are their owner's, whatever the umask. Servers that run as another user
// work below them in a view of their own (testbed/proc).
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// MakeRoot makes the folder of all records, with those above it. One that is there
// stays as it is.
func MakeRoot(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return os.Mkdir(dir, dirMode)
}

// OpenLog opens a file beside the records that is written to at its end.
func OpenLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
}

// MaxWhole bounds in bytes what of a record is read into memory at once: a file, or a line of
// one that is read line by line.
const MaxWhole = 64 << 20

// WriteJSON writes v, indented, to a file that appears whole or not at all.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// WriteFile has a file written that appears whole or not at all, also where the power
// fails.
func WriteFile(path string, write func(io.Writer) error) error {
	return WriteFileMode(path, fileMode, write)
}

// WriteFileMode is WriteFile for a file with other permissions.
func WriteFileMode(path string, mode os.FileMode, write func(io.Writer) error) error {
	tmp, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(mode), renameio.IgnoreUmask())
	if err == nil {
		defer tmp.Cleanup()
		w := bufio.NewWriter(tmp)
		if err = write(w); err == nil {
			err = w.Flush()
		}
		if err == nil {
			err = tmp.CloseAtomicallyReplace()
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w (is the disk full or read-only?)", path, err)
	}
	return nil
}

// ReadJSON reads a file written by WriteJSON. Only a regular file is read, and no
// link to one: what is in a run's folder may be somebody else's work. It has MaxWhole bytes at
// most.
func ReadJSON(path string, v any) error {
	f, err := regular.Open(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxWhole+1))
	if err != nil {
		return err
	}
	if len(b) > MaxWhole {
		return fmt.Errorf("%s has more than %d MiB: netsplit writes none so long", path, MaxWhole>>20)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
