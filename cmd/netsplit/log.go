package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logFlags say how a daemon or a runner logs; the zero value logs as text.
type logFlags struct {
	format  string
	verbose bool
}

// Forms of the log.
const (
	logText = "text" // lines of key=value
	logJSON = "json" // an object a line
)

func (l *logFlags) register(f *pflag.FlagSet) {
	f.StringVar(&l.format, "log-format", logText, "form of the log: text (lines of key=value) or json (an object a line)")
	f.BoolVarP(&l.verbose, "verbose", "v", false, "log more")
}

func (l logFlags) check() error {
	if l.format != "" && l.format != logText && l.format != logJSON {
		return usage("--log-format %q: want %s or %s", l.format, logText, logJSON)
	}
	return nil
}

// open logs to w.
func (l logFlags) open(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if l.verbose {
		options.Level = slog.LevelDebug
	}
	if l.format == logJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
