// Package grafana holds the dashboards and the files that make Grafana find them.
package grafana

import "embed"

// Names of the dashboards.
const (
	Partitions = "partitions" // what was cut, and whether the cuts held
	Campaigns  = "campaigns"  // what campaigns do and found
	Daemon     = "daemon"     // whether the daemon can work
)

// Names lists all dashboards.
func Names() []string { return []string{Partitions, Campaigns, Daemon} }

//go:embed dashboards
var files embed.FS

// Dashboard returns the JSON that Grafana imports; nil for an unknown name.
func Dashboard(name string) []byte {
	b, err := files.ReadFile("dashboards/netsplit-" + name + ".json")
	if err != nil {
		return nil
	}
	return b
}
