package target

import "testing"

func TestLoadBuiltin(t *testing.T) {
	tg, dir, err := Load("redis-sentinel")
	if err != nil {
		t.Fatal(err)
	}
	if dir != "" || tg.Name != "redis-sentinel" || len(tg.Nodes) != 3 {
		t.Fatalf("dir %q, target %+v", dir, tg)
	}
}
