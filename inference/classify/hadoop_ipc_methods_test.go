package classify

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netsplit/model"
)

// An ipcConnection is one of testdata/hdfs020/methods-RELEASE.txt: what was said, and how Hadoop reads it.
type ipcConnection struct {
	said [2][]byte
	want []string // ">" or "<", offset, length, type, fields; sorted
}

func ipcConnections(t testing.TB, release string) (out []ipcConnection) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "hdfs020", "methods-"+release+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if words[0] != "connection" {
			c := &out[len(out)-1]
			c.want = append(c.want, ipcLine(words))
			continue
		}
		var c ipcConnection
		for dir := range c.said {
			if c.said[dir], err = hex.DecodeString(words[1+dir]); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, c)
	}
	for _, c := range out {
		slices.Sort(c.want)
	}
	return out
}

// ipcLine is a message whose fields are in no order.
func ipcLine(words []string) string {
	slices.Sort(words[min(4, len(words)):])
	return strings.Join(words, "\t")
}

func ipcLineOf(u Unit) string {
	words := []string{string("><"[u.Dir]), fmt.Sprint(u.Offset), fmt.Sprint(u.Bytes), u.Type}
	for _, f := range u.Fields {
		words = append(words, f.Name+"="+f.Value)
	}
	return ipcLine(words)
}

// TestHadoopMethods: all calls of all protocols of HDFS, made with Hadoop itself, read as Hadoop reads them.
func TestHadoopMethods(t *testing.T) {
	for release, methods := range map[string]int{"0.20.2": 52, "1.2.1": 66} {
		n := 0
		for _, c := range ipcConnections(t, release) {
			in := []step{{b: c.said[0]}, {dir: 1, b: c.said[1]}}
			us := rules(t, model.Protocol{Dissector: NameHadoopWritable}, in, 1, 20)
			var got []string
			for _, u := range slices.Concat(us[0], us[1]) {
				got = append(got, ipcLineOf(u))
				if strings.HasSuffix(u.Type, " reply") || strings.HasSuffix(u.Type, " error") {
					n++
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-Hadoop +netsplit):\n%s", release, d)
			}
		}
		if n != methods {
			t.Errorf("%s: %d answers, want %d", release, n, methods)
		}
	}
}

// TestHadoopBegunAnywhere: a reader that begins inside a message finds the next, and none where none starts.
func TestHadoopBegunAnywhere(t *testing.T) {
	for _, release := range []string{"0.20.2", "1.2.1"} {
		for i, c := range ipcConnections(t, release) {
			for dir, said := range c.said {
				starts := map[uint64]bool{}
				for _, line := range c.want {
					words := strings.Split(line, "\t")
					var at uint64
					if fmt.Sscan(words[1], &at); words[0] == string("><"[dir]) {
						starts[at] = true
					}
				}
				for k := 1; k < len(said); k++ {
					h := &hadoopWritable{pending: map[int32]string{}, names: map[string]bool{}, secure: release != "0.20.2"}
					d := newFramedPair(h)
					d.Gap(dir, 0, uint64(k), func(Unit) {})
					found := false
					d.Data(dir, uint64(k), said[k:min(k+2000, len(said))], func(u Unit) {
						if u.Type == model.TypeUnknown || found {
							return
						}
						found = true
						if !starts[u.Offset] {
							t.Errorf("%s, connection %d: begun at %d, %s is found at %d", release, i, k, u.Type, u.Offset)
						}
					})
				}
			}
		}
	}
}
