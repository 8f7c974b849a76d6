package relation

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/ncruces/go-sqlite3"
)

// matchesFunc is a function of SQL: of a regular expression and a text. It returns JSON, a
// list with a list for each match: the match and its groups.
const matchesFunc = "matches"

func matches(ctx sqlite3.Context, arg ...sqlite3.Value) {
	re, known := ctx.GetAuxData(0).(*regexp.Regexp)
	if !known {
		var err error
		if re, err = regexp.Compile(arg[0].Text()); err != nil {
			ctx.ResultError(err)
			return
		}
		ctx.SetAuxData(0, re)
	}
	value, out := arg[1].Text(), [][]any{}
	for _, m := range re.FindAllStringSubmatchIndex(value, -1) {
		row := make([]any, 0, len(m)/2)
		for i := 0; i < len(m); i += 2 {
			if m[i] < 0 { // the group is in another branch
				row = append(row, nil)
				continue
			}
			text := value[m[i]:m[i+1]]
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
				row = append(row, n)
				continue
			}
			row = append(row, text)
		}
		out = append(out, row)
	}
	b, err := json.Marshal(out)
	if err != nil {
		ctx.ResultError(err)
		return
	}
	ctx.ResultText(string(b))
}
