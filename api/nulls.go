package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// strictJSON reads request bodies. A null is refused: huma takes one for a field that was
// left out, and the contract knows none.
func strictJSON() huma.Format {
	f := huma.DefaultJSONFormat
	f.Unmarshal = func(data []byte, v any) error {
		if err := json.Unmarshal(data, v); err != nil {
			return err
		}
		if body, ok := v.(*any); ok { // first all of it, for validation
			if at, found := nullIn(*body); found {
				return fmt.Errorf("body%s is null: give it a value, or leave it out", at)
			}
		}
		return nil
	}
	return f
}

// nullIn finds a null, and where it is.
func nullIn(v any) (at string, found bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if at, found := nullIn(v[k]); found {
				return "." + k + at, true
			}
		}
	case []any:
		for i, e := range v {
			if at, found := nullIn(e); found {
				return "[" + strconv.Itoa(i) + "]" + at, true
			}
		}
	}
	return "", false
}
