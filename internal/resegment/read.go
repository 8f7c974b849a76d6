package resegment

import (
	"errors"
	"io"
	"os"
	"slices"

	"netsplit/inference/pcap"
	"netsplit/model"
)

// Read reads a recorded capture.
func Read(path string) ([]model.Frame, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		return nil, err
	}
	var frames []model.Frame
	for {
		fr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, err
		}
		fr.Data = slices.Clone(fr.Data)
		frames = append(frames, fr)
	}
}
