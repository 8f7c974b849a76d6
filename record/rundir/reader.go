package rundir

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"netsplit/internal/regular"
)

// ReadLines decodes a JSON-lines file. A missing file is empty. A last line
// that was cut off (the writer was killed) is left out and truncated is true;
// a broken line elsewhere is an error that names it.
func ReadLines[T any](dir, file string) (out []T, truncated bool, err error) {
	truncated, err = EachLine(dir, file, func(v T) error {
		out = append(out, v)
		return nil
	})
	return out, truncated, err
}

// EachLine calls f with what each line of a JSON-lines file decodes to, without keeping
// the file in memory; an error of f ends it. Files are read as ReadLines reads them.
func EachLine[T any](dir, file string, f func(T) error) (truncated bool, err error) {
	in, err := regular.Open(dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		line, end := readLine(r)
		if end != nil && end != io.EOF {
			return false, fmt.Errorf("%s line %d: %w", filepath.Join(dir, file), n, end)
		}
		if len(line) == 0 {
			return false, nil
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			if _, more := r.Peek(1); end == io.EOF || more == io.EOF {
				return true, nil
			}
			return false, fmt.Errorf("%s line %d: %w", filepath.Join(dir, file), n, err)
		}
		if err := f(v); err != nil {
			return false, err
		}
	}
}

// readLine reads a line, with its end.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > MaxWhole:
			return nil, fmt.Errorf("it has more than %d MiB: netsplit writes none so long", MaxWhole>>20)
		}
	}
}
