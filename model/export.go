package model

// ExportFormat is a format of another tool, in which the record of a run can be had.
type ExportFormat string

// Formats of an export.
const (
	// ExportShiViz is the log with vector clocks of https://bestchai.bitbucket.io/shiviz/.
	ExportShiViz ExportFormat = "shiviz"
	// ExportTrace is the Trace Event Format in JSON, which Perfetto and chrome://tracing read.
	ExportTrace ExportFormat = "trace"
)

// ExportFormats lists all formats.
func ExportFormats() []ExportFormat { return []ExportFormat{ExportShiViz, ExportTrace} }

// MediaType is the media type of a format.
func (f ExportFormat) MediaType() string {
	if f == ExportTrace {
		return "application/json"
	}
	return "text/plain"
}
