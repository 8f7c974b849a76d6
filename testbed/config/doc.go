// Package config reads and writes testbed files: YAML that says which hosts
// there are, on which port of which switch each one is, and how to run a
// command on it (model.Testbed). The lab writes one; one written by hand makes
// netsplit drive any other OpenFlow 1.3 switch.
package config
