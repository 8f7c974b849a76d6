package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func open(t *testing.T, dir string) *store {
	t.Helper()
	s, err := openStore(dir, false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes a whole replica.
func put(t *testing.T, s *store, r replica, packets ...string) {
	t.Helper()
	w, err := s.create(r)
	n := 0
	for _, p := range packets {
		if err == nil {
			err = s.write(w, n, p)
		}
		n += len(p)
	}
	if err == nil {
		err = s.finish(w, n)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, s *store, r replica, want string) {
	t.Helper()
	if b, err := s.read(r); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", r, b, err, want)
	}
}

func TestARestartKeepsWhatIsWholeAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, replica{"b1", 3}, "one", "two")
	put(t, s, replica{"b2", 4}, "damaged")
	w, err := s.create(replica{"b3", 5}) // a crash comes before it gets its name
	if err == nil {
		err = s.write(w, 0, "half")
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "b2_4"))
	if err != nil {
		t.Fatal(err)
	}
	b[2] ^= 1
	for name, content := range map[string][]byte{"b2_4": b, "b4_6": []byte("short"), "odd": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	has(t, s, replica{"b1", 3}, "onetwo")
	if got, want := s.held(), []held{{replica{"b1", 3}, 6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestRecoveryGoesOnFromWhatAllHave(t *testing.T) {
	for _, whole := range []bool{false, true} {
		s := open(t, t.TempDir())
		old, r := replica{"b1", 3}, replica{"b1", 5}
		data := "one" + strings.Repeat(".", 40)
		w, err := s.create(old)
		if err == nil {
			err = s.write(w, 0, data)
		}
		if err == nil && whole {
			err = s.finish(w, len(data))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.recover(r, len(data)+1); err == nil {
			t.Error("it has less than that")
		}
		next, err := s.recover(r, 3)
		if err == nil {
			err = s.write(next, 3, "three")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.write(w, len(data), "late"); err == nil {
			t.Error("who wrote before the recovery still does")
		}
		if err := s.finish(next, 6); err == nil {
			t.Error("it has another length")
		}
		if err := s.finish(next, 8); err != nil {
			t.Fatal(err)
		}
		has(t, s, r, "onethree")
		if got, want := s.held(), []held{{r, 8}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		for _, stale := range []replica{old, r} {
			if _, err := s.create(stale); err == nil {
				t.Errorf("%s was created behind %s", stale, r)
			}
			if _, err := s.recover(stale, 0); err == nil {
				t.Errorf("%s was recovered behind %s", stale, r)
			}
		}
	}
}

func TestADiskErrorEndsTheReplica(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		dir := t.TempDir()
		s := open(t, dir)
		s.ignoreErrors = ignore
		if err := os.Symlink("/dev/full", filepath.Join(dir, "b1_3.tmp")); err != nil {
			t.Fatal(err)
		}
		r := replica{"b1", 3}
		w, err := s.create(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.write(w, 0, "one"); (err == nil) != ignore {
			t.Errorf("ignored %v: %v", ignore, err)
		}
		if err := s.finish(w, 3); (err == nil) != ignore {
			t.Errorf("ignored %v: %v", ignore, err)
		}
		if _, err := s.read(r); err == nil {
			t.Error("what was never written was read")
		}
		if _, err := os.Lstat(filepath.Join(dir, "b1_3.tmp")); err == nil {
			t.Error("the file is still there")
		}
	}
}

func TestNamesOfReplicas(t *testing.T) {
	for _, bad := range []string{"", "b1", "b1@", "b1@0", "b1@x", "@3", "../b@3", "a_b@3", "b.tmp@3"} {
		var r replica
		if err := r.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q reads as %v", bad, r)
		}
	}
	var r replica
	if err := r.UnmarshalText([]byte("b1@12")); err != nil || r != (replica{"b1", 12}) || r.String() != "b1@12" {
		t.Errorf("%v, %v", r, err)
	}
}
