package main

import "testing"

// TestTheCommandThatPlaysAScriptAgainIsTheOneThatDid: on the same switches, by the
// same flags.
func TestTheCommandThatPlaysAScriptAgainIsTheOneThatDid(t *testing.T) {
	for want, args := range map[string][]string{
		"netsplit script run a.yaml":                                            {"-n", "3", "-q"},
		"netsplit script run a.yaml --seed 7 --set mode=x --set rate=2":         {"--set", "rate=2", "--set", "mode=x", "--seed", "7"},
		"netsplit script run a.yaml --role equal --testbed rack.yaml":           {"--testbed", "rack.yaml", "--role", "equal"},
		"netsplit script run a.yaml --openflow [::1]:6653 --testbed rack.yaml":  {"--testbed", "rack.yaml", "--openflow", "[::1]:6653"},
		"netsplit script run a.yaml --allowed-datapath 1,2 --testbed rack.yaml": {"--testbed", "rack.yaml", "--allowed-datapath", "1,2"},
		"netsplit script run a.yaml --target other/target.yaml":                 {"--target", "other/target.yaml"},
		"netsplit script run a.yaml --tls-ca ca.pem --tls-cert c.pem":           {"--tls-cert", "c.pem", "--tls-ca", "ca.pem"},
	} {
		c := scriptRun(&daemonFlags{})
		if err := c.Flags().Parse(args); err != nil {
			t.Fatal(err)
		}
		set, err := c.Flags().GetStringToString("set")
		if err != nil {
			t.Fatal(err)
		}
		if got := repeatOf(c.Flags(), "a.yaml", set); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
