package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netsplit/model"
	"netsplit/record"
)

// TestTailFollowsFilesThatAppear: lines count once, whole, whenever they come,
// and a copy of the file is kept.
func TestTailFollowsFilesThatAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, copies := t.TempDir(), t.TempDir()
		l, kept := collect(t, model.LogPatterns{Fatal: []string{"^ERROR"}})
		if err := os.MkdirAll(filepath.Join(dir, "logs", "app"), 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "logs", "app", "syslog")
		if err := os.WriteFile(path, []byte("ERROR first\nERR"), 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.tail(ctx, "n1", dir, []string{"logs/**/syslog"}, time.Now(), copies) }()
		time.Sleep(2 * tailEvery)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("OR second\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		cancel() // what was written before the end is read all the same
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.flush()
		if len(*kept) != 2 || (*kept)[0].Line != "ERROR first" || (*kept)[1].Line != "ERROR second" || (*kept)[1].File != "logs/app/syslog" {
			t.Errorf("kept %+v", *kept)
		}
		b, err := os.ReadFile(filepath.Join(copies, "logs", "app", "syslog"))
		if err != nil || string(b) != "ERROR first\nERROR second\n" {
			t.Errorf("the copy holds %q: %v", b, err)
		}
	})
}

// TestTailFollowsAFileThatWasReplaced: a log that was rotated or begun anew is
// read on, and a last line counts that has no end.
func TestTailFollowsAFileThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, kept := collect(t, model.LogPatterns{Fatal: []string{"^ERROR"}})
		path := filepath.Join(dir, "a.log")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("INFO long enough to be cut short\nERROR one\n")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.tail(ctx, "n1", dir, []string{"*.log"}, time.Now(), t.TempDir()) }()
		time.Sleep(2 * tailEvery)
		write("ERROR two\n") // cut short
		time.Sleep(2 * tailEvery)
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		write("ERROR three\nERROR four, and then it was killed")
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		l.flush()
		if got, want := firstLines(*kept), "ERROR one|ERROR two|ERROR three|ERROR four, and then it was killed"; got != want {
			t.Errorf("kept %s, want %s", got, want)
		}
	})
}

// TestALogThatCannotBeKeptIsReadAndTold: a full disk hides no failure.
func TestALogThatCannotBeKeptIsReadAndTold(t *testing.T) {
	dir := t.TempDir()
	l, kept := collect(t, model.LogPatterns{Fatal: []string{"^ERROR"}})
	if err := os.WriteFile(filepath.Join(dir, "a.log"), []byte("ERROR one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := l.tail(ctx, "n1", dir, []string{"*.log"}, time.Now(), "/dev/null/x")
	l.flush()
	if err == nil || !strings.Contains(err.Error(), "keep a copy of log file") || len(*kept) != 1 {
		t.Errorf("%v, kept %+v", err, *kept)
	}
}

// tailedWhile reads the log files of a folder while change works on it.
func tailedWhile(t *testing.T, dir string, patterns []string, change func(look func())) (*[]record.LogLine, error) {
	l, kept := collect(t, model.LogPatterns{Fatal: []string{"."}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.tail(ctx, "n1", dir, patterns, time.Now(), t.TempDir()) }()
	time.Sleep(2 * tailEvery)
	change(func() { time.Sleep(2 * tailEvery) })
	cancel()
	err := <-done
	l.flush()
	return kept, err
}

// TestALogIsReadOnceUnderAllItsNames: a log that was rotated to a name that is read, too, or
// has links, and a folder with links to itself.
func TestALogIsReadOnceUnderAllItsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		try := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		try(os.Mkdir(at("logs"), 0o755))
		for i := range 12 { // paths with eight of them are followed: os.Root
			try(os.Symlink(".", at(fmt.Sprintf("logs/self%d", i))))
		}
		try(os.WriteFile(at("logs/z.log"), []byte("one\n"), 0o644))
		try(os.Symlink("z.log", at("logs/newest.log")))
		try(os.MkdirAll(at("var/log"), 0o755))
		try(os.Mkdir(at("db"), 0o755))
		try(os.Symlink("../var/log", at("db/logs")))
		try(os.Symlink("/", at("db/root")))
		try(os.WriteFile(at("var/log/b.log"), []byte("zero\n"), 0o644))
		kept, err := tailedWhile(t, dir, []string{"*/logs/*.log", "**/*.log*", "logs/*"}, func(look func()) {
			try(os.Rename(at("logs/z.log"), at("logs/a.log.1")))
			look()
			f, err := os.OpenFile(at("logs/a.log.1"), os.O_APPEND|os.O_WRONLY, 0)
			try(err)
			_, err = f.WriteString("two\n") // the server has it open still
			try(errors.Join(err, f.Close()))
			try(os.WriteFile(at("logs/z.log"), []byte("three\n"), 0o644))
			try(os.Remove(at("logs/a.log.1")))
			look()
		})
		got := strings.Split(firstLines(*kept), "|")
		slices.Sort(got) // those of several files, as they end
		if want := []string{"one", "three", "two", "zero"}; !slices.Equal(got, want) || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// TestALineWithoutEndIsReadInParts: a file may hold anything.
func TestALineWithoutEndIsReadInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		text := strings.Repeat("x", 5*maxLogLine+3)
		if err := os.WriteFile(filepath.Join(dir, "a.log"), []byte(text+"\nend\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		kept, err := tailedWhile(t, dir, []string{"*.log"}, func(func()) {})
		var all strings.Builder
		for _, k := range *kept {
			if len(k.Line) > maxLogLine+64<<10 {
				t.Errorf("a line of %d bytes", len(k.Line))
			}
			all.WriteString(k.Line)
		}
		if all.String() != text+"end" || len(*kept) < 4 || err != nil {
			t.Errorf("%d lines of %d bytes, %v", len(*kept), all.Len(), err)
		}
	})
}

// TestALogThatIsTooLongIsTold: of a file that a program made as long as it likes, a bounded part
// is read.
func TestALogThatIsTooLongIsTold(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	bytes, tail := 0, tailing{dir: dir, patterns: []string{"*.log"}, copyTo: "/dev/null/x", most: 5 << 20}
	tail.line = func(_ *tailed, text string) { bytes += len(text) }
	tail.look()
	tail.first = nil // the copy
	tail.look()
	if tail.first == nil || !strings.Contains(tail.first.Error(), "longer than 5242880 bytes") || bytes < 5<<20 || bytes > 6<<20 {
		t.Errorf("%d bytes, %v", bytes, tail.first)
	}
}

// TestALogThatIsGoneIsClosed, once it is read to its end; one that was moved is not.
func TestALogThatIsGoneIsClosed(t *testing.T) {
	dir, read := t.TempDir(), ""
	tail := tailing{dir: dir, patterns: []string{"*.log"}, copyTo: t.TempDir(), most: maxLogBytes, line: func(_ *tailed, text string) { read += text }}
	for _, name := range []string{"gone", "moved"} {
		if err := os.WriteFile(filepath.Join(dir, name+".log"), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tail.look()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "gone.log"), []byte("gone\nend"), 0o644), os.Remove(filepath.Join(dir, "gone.log")), os.Rename(filepath.Join(dir, "moved.log"), filepath.Join(dir, "moved"))); err != nil {
		t.Fatal(err)
	}
	tail.look()
	if len(tail.files) != 1 || tail.files[0].rel != "moved.log" || read != "gonemovedend" || tail.first != nil {
		t.Errorf("%d files are open, read %q, %v", len(tail.files), read, tail.first)
	}
}
