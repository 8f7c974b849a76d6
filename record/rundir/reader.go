package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"netsplit/internal/regular"
)

// ReadLines decodes a JSON-lines file. A missing file is empty. A last line
// that was cut off (the writer was killed) is left out and truncated is true;
// a broken line elsewhere is an error that names it.
func ReadLines[T any](dir, file string) (out []T, truncated bool, err error) {
	b, err := regular.Read(dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		var v T
		if jerr := json.Unmarshal(line, &v); jerr != nil {
			if !whole || len(rest) == 0 {
				return out, true, nil
			}
			return out, false, fmt.Errorf("%s line %d: %w", filepath.Join(dir, file), n, jerr)
		}
		out = append(out, v)
		b = rest
	}
	return out, false, nil
}
