package inference

import (
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"netsplit/inference/pcap"
	"netsplit/model"
)

func readCapture(t testing.TB, path string) []model.Frame {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var frames []model.Frame
	for {
		fr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		fr.Data = slices.Clone(fr.Data)
		frames = append(frames, fr)
	}
}
