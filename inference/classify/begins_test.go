package classify

import (
	"slices"
	"testing"

	"netsplit/model"
)

// TestEveryReaderSaysHowItsTypesBegin; rules checks the types of all seeds against it.
func TestEveryReaderSaysHowItsTypesBegin(t *testing.T) {
	for _, name := range Names() {
		if _, ok := begins[name]; !ok {
			t.Errorf("reader %s is not in begins", name)
		}
	}
}

func TestWhatNoReaderGives(t *testing.T) {
	redis := []model.Protocol{{Port: 6379, Dissector: NameRESP}, {Port: 9, Dissector: NameFallback}}
	for pattern, want := range map[string]bool{
		"resp PING": true, "resp *": true, "res*": true, "resp": true, "resp*": true, "*": true, "*PING": true, "r*g": true,
		"tcp syn :6379": true, "tcp data > 2^5": true, "arp who-has": true, "tls data 2^7": true, "unknown": true, "udp data 2^3": true,
		"text PING": false, "PING": false, "json *": false, "respx*": false, "Resp PING": false, "frame 0x8": false, "unknown x*": true,
	} {
		if got := CanGive(redis, pattern); got != want {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
	if CanGive(nil, "resp PING") {
		t.Error("a target without that reader gives it")
	}
	if got := Begins(redis); !slices.Contains(got, "resp") || slices.Contains(got, "") || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
}
