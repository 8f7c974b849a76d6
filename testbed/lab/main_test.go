package lab

import (
	"os"
	"testing"

	"netsplit/internal/labtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == helperArg && labtest.Inside() {
		os.Exit(helper(os.Args[2:]))
	}
	os.Exit(labtest.Main(m.Run))
}
