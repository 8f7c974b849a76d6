package classify

import (
	"os"
	"path/filepath"
	"testing"

	"netsplit/model"
)

func FuzzHDFSWritable(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "hdfs020", "seed", "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, int64(1))
		f.Add(b[60:], int64(2)) // its middle, from anywhere
	}
	for _, c := range hwCases {
		var in []byte
		for _, x := range c.turns {
			in = append(in, byte(x.dir), byte(len(x.b)>>8), byte(len(x.b)))
			in = append(in, x.b...)
		}
		f.Add(in, int64(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHDFSWritable}, hadoopSteps(in), seed, fuzzCuts)
	})
}
