package main

import (
	"io"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	const peers = "-peers n2=127.0.0.1:1"
	for args, want := range map[string]string{
		"":                                      "want name, data, write or read",
		"-speed 3":                              "-speed",
		"-role read -bug x":                     "none of none, early-answer",
		"-role read -hop 0s -name a:1 " + peers: "must be positive",
		"-role write " + peers:                  "needs -name",
		"-role data -id n9 -name a:1 " + peers:  "-id \"n9\" is none",
		"-role read -name a:1 -peers n2":        "want name=host:port",
		"-role read -name a:1 -peers n2=127.0.0.1:1,n2=a:2": "n2 is named twice",
	} {
		if err := run(t.Context(), strings.Fields(args), strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
