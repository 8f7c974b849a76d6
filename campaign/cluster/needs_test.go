package cluster

import (
	"strings"
	"testing"

	"netsplit/model"
)

func TestWhatARunnerLacks(t *testing.T) {
	r := model.Runner{Cores: 4, Memory: 16 << 10, Has: []string{"lab", "root"}}
	for _, c := range []struct{ needs, lacks string }{
		{"", ""}, {"lab,root", ""}, {"cores=4,memory=16GiB,lab", ""}, {"memory=16384MiB", ""}, {"memory=16GB", ""},
		{"cores=5", "cores=5"}, {"memory=17GiB,lab", "memory=17GiB"}, {"rack,cores=8,root", "rack, cores=8"},
	} {
		needs := strings.FieldsFunc(c.needs, func(r rune) bool { return r == ',' })
		if err := CheckNeeds(needs); err != nil {
			t.Errorf("%s: %v", c.needs, err)
		}
		err := fits(r, needs)
		if (err == nil) != (c.lacks == "") || err != nil && !strings.Contains(err.Error(), "a runner with "+c.lacks+", and this one has lab, root, cores=4, memory=16384MB") {
			t.Errorf("%s: %v, want %q", c.needs, err, c.lacks)
		}
	}
	for _, bad := range []string{"", "cores=", "cores=0", "cores=x", "memory=", "memory=much", "memory=0", "two words", "cores>4"} {
		if err := CheckNeeds([]string{bad}); err == nil || !strings.HasPrefix(err.Error(), bad+": write") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
