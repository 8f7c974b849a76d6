package classify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"netsplit/model"
)

// hadoopSteps reads a conversation: a byte for the direction (0, 1) or, where
// it is above, for a gap, then two bytes of length, then so many bytes.
func hadoopSteps(in []byte) []step {
	var out []step
	dir, repeated := 0, 0
	for len(in) >= 3 {
		n := int(binary.BigEndian.Uint16(in[1:]))
		op := in[0]
		in = in[3:]
		if op&0x7F > 1 {
			out = append(out, step{dir: dir, gap: n + 1})
			continue
		}
		dir = int(op & 1)
		b := in[:min(n, len(in))]
		in = in[len(b):]
		if op&0x80 != 0 && repeated < 2 { // many times over, to pass the bounds
			repeated++
			var long []byte
			for len(b) > 0 && len(long) < 200<<10 {
				long = append(long, b...)
			}
			b = long
		}
		if len(b) > 0 {
			out = append(out, step{dir: dir, b: b})
		}
	}
	return out
}

func hadoopSeeds(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "hadoop", "seed", "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, int64(1))
		// The same with a hole, and with its middle seen only.
		cut := append([]byte{}, b...)
		if len(cut) > 600 {
			f.Add(append(cut[:300:300], append([]byte{2, 0, 40}, cut[300:]...)...), int64(2))
			f.Add(cut[250:], int64(3))
		}
	}
}

func FuzzHadoopRPC(f *testing.F) {
	hadoopSeeds(f)
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHadoopRPC}, hadoopSteps(in), seed, fuzzCuts)
	})
}

func FuzzHDFSData(f *testing.F) {
	hadoopSeeds(f)
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHDFSData}, hadoopSteps(in), seed, fuzzCuts)
	})
}

func FuzzHTTP(f *testing.F) {
	hadoopSeeds(f)
	f.Add([]byte("\x00\x00\x12GET /a HTTP/1.1\r\n\r\n\x01\x00\x60HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 404 N\r\nContent-Length: 1\r\n\r\nx"), int64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHTTP}, hadoopSteps(in), seed, fuzzCuts)
	})
}

func FuzzHTTPStream(f *testing.F) {
	hadoopSeeds(f)
	f.Add([]byte("\x00\x00\x12GET /a HTTP/1.1\r\n\r\n\x01\x00\x60HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nx\r\n0\r\n\r\nHTTP/1.1 404 N\r\nContent-Length: 1\r\n\r\nx"), int64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameHTTPStream}, hadoopSteps(in), seed, fuzzCuts)
	})
}

func FuzzSniffing(f *testing.F) {
	hadoopSeeds(f)
	f.Add([]byte("\x00\x00\x03hrp\x01\x00\x02ab\x00\x00\x02c\x09"), int64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		rules(t, model.Protocol{Dissector: NameFallback}, hadoopSteps(in), seed, fuzzCuts)
	})
}
