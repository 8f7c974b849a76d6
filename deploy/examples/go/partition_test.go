// An example: tests of your own system that cut its network. See docs/go.md.
package tests

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"netsplit/api/clienttest"
)

// reaches says whether a client of the system gets an answer: put yours here. CLIENT is a
// command for this example.
func reaches(t *testing.T) bool {
	client := strings.Fields(os.Getenv("CLIENT"))
	if len(client) == 0 {
		t.Fatal("set CLIENT to a command that succeeds only if host a reaches host b")
	}
	return exec.Command(client[0], client[1:]...).Run() == nil
}

func TestFailover(t *testing.T) {
	ns := clienttest.Connect(t)
	cut := ns.Partition([]string{"a"}, []string{"b", "c"}) // nothing passes, proved
	if reaches(t) {
		t.Error("a reaches b across the cut")
	}
	cut.Heal() // packets pass again, proved; the end of the test does it, too
	if !reaches(t) {
		t.Error("a does not reach b after the heal")
	}
}
