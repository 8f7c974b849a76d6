package sut

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"netsplit/model"
)

// TestArgumentsOfOperationsAreNoCode: an argument comes from whoever writes a script. It is a
// word of its own in the command or, in code, quoted.
func TestArgumentsOfOperationsAreNoCode(t *testing.T) {
	const argument = `x'} os.execute("id") --$(id)` + "`id`\n"
	seen := 0
	for _, name := range Known() {
		target, _, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		in := ExpandInput{Host: target.Nodes[0], Hosts: map[model.NodeID]netip.Addr{}, Bin: "/bin", TargetDir: "/t", Dir: "/d"}
		for i, h := range slices.Concat(target.Nodes, target.Clients) {
			in.Hosts[h] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})
		}
		for _, op := range target.Operations {
			args := make([]string, len(op.Takes))
			for i, takes := range op.Takes {
				if args[i] = argument; takes == "node" {
					args[i] = string(target.Nodes[0])
				}
			}
			got, err := Operation(target, in, op.Name, args)
			if err != nil {
				t.Fatalf("%s %s: %v", name, op.Name, err)
			}
			for _, word := range got.Command {
				if strings.Contains(word, "os.execute") {
					seen++
				}
				if word != argument && (strings.Contains(word, argument) || strings.Contains(word, `("id")`)) {
					t.Errorf("%s %s: an argument is code in %q", name, op.Name, word)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no argument is in any command")
	}
}
