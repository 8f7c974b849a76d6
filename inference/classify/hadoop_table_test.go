package classify

import (
	"bufio"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestHadoopMessagesReadAsTheJarsReadThem compares messages of real clusters
// with what the classes of the release say is in them; see
// testdata/hadoop/HadoopLeaves.java.
func TestHadoopMessagesReadAsTheJarsReadThem(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "hadoop", "leaves-3.3.0.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	messages, leaves := 0, 0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		cols := strings.Split(s.Text(), "\t")
		typ := hadoopTable.types[strings.TrimPrefix(cols[0], "hadoop.")]
		b, err := hex.DecodeString(cols[1])
		if typ == nil || err != nil {
			t.Fatalf("%s: %v %v", cols[0], typ, err)
		}
		messages++
		m := typ.decode(b, false)
		if m.cut {
			t.Errorf("%s: not read to its end", typ.name)
		}
		got := map[string]string{}
		for _, f := range pbFieldsOf(m) {
			got[f.Name] = f.Value
		}
		for _, leaf := range cols[2:] {
			path, want, _ := strings.Cut(leaf, "=")
			want, err := url.PathUnescape(want)
			if err != nil {
				t.Fatal(err)
			}
			if pbUnshown(typ, path) || want == "" || len(want) > pbValue {
				continue
			}
			leaves++
			if v := got[path]; v != want && !sameNumber(v, want) {
				t.Errorf("%s %s is %q, the jar says %q", typ.name, path, v, want)
			}
		}
	}
	t.Logf("%d messages, %d values equal", messages, leaves)
	if messages < 80 || leaves < 400 {
		t.Errorf("only %d messages and %d values were compared", messages, leaves)
	}
}

// pbUnshown reports whether a path lies in what is hidden or said by a short form.
func pbUnshown(t *pbType, path string) bool {
	for _, name := range strings.Split(path, ".") {
		var next *pbField
		for i := range t.fields {
			if t.fields[i].name == name {
				next = &t.fields[i]
			}
		}
		if next == nil {
			return false
		}
		if next.hidden || next.typ != nil && next.typ.whole {
			return true
		}
		t = next.typ
	}
	return false
}

func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 32)
	y, err2 := strconv.ParseFloat(b, 32)
	return err == nil && err2 == nil && x == y
}
