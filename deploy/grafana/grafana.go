// Package grafana holds the dashboard of the injected partitions and the
// files that make Grafana find it.
package grafana

import _ "embed" // the dashboard

//go:embed dashboards/netsplit-partitions.json
var dashboard []byte

// Dashboard returns the JSON that Grafana imports.
func Dashboard() []byte { return dashboard }
