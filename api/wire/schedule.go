package wire

import (
	"time"

	"netsplit/model"
)

// ScheduleSpec asks for a schedule: at or cron must be set, and not both.
type ScheduleSpec struct {
	Campaign CampaignSpec `json:"campaign" doc:"What each campaign is; without a seed, each has one of its own"`
	At       *time.Time   `json:"at,omitempty" doc:"Make one campaign at this time; if the daemon is down then, when it starts again" example:"2026-11-28T03:00:00Z"`
	Cron     string       `json:"cron,omitempty" maxLength:"100" doc:"Make a campaign at each of these times: minute, hour, day of month, month, day of week, or a descriptor such as @daily. Those at which the daemon is down are left out" example:"0 3 * * *"`
	TimeZone string       `json:"timeZone,omitempty" maxLength:"64" doc:"Time zone of cron, a name of the IANA database; absent: the daemon's" example:"Europe/Berlin"`
	Overlap  string       `json:"overlap,omitempty" enum:"skip,queue" default:"skip" doc:"What to do while the schedule's last campaign has not ended: make none, or make one that waits, unless one waits already"`
	Paused   bool         `json:"paused,omitempty" doc:"Make no campaigns"`
}

// Schedule makes campaigns by itself.
type Schedule struct {
	Name string `json:"name"`
	ScheduleSpec
	Created  time.Time  `json:"created"`
	Next     *time.Time `json:"next,omitempty" doc:"When it makes the next campaign; absent: never"`
	Last     string     `json:"last,omitempty" doc:"The last campaign that it made"`
	LastTime *time.Time `json:"lastTime,omitempty" doc:"When it was last to make one"`
	Note     string     `json:"note,omitempty" doc:"Why it then made none"`
}

// Schedules are all schedules, by name.
type Schedules struct {
	Items []Schedule `json:"items"`
}

// Model converts a request.
func (s ScheduleSpec) Model(name string) (model.Schedule, error) {
	spec, err := s.Campaign.Model()
	m := model.Schedule{Name: name, Spec: spec, Cron: s.Cron, TimeZone: s.TimeZone, Overlap: model.Overlap(s.Overlap), Paused: s.Paused}
	if s.At != nil {
		m.At = *s.At
	}
	return m, err
}

// FromSchedule converts a schedule.
func FromSchedule(m model.Schedule) Schedule {
	return Schedule{Name: m.Name, Created: m.Created.UTC(), Next: when(m.Next), Last: m.Last, LastTime: when(m.LastTime), Note: m.Note,
		ScheduleSpec: ScheduleSpec{Campaign: FromCampaignSpec(m.Spec), At: when(m.At), Cron: m.Cron, TimeZone: m.TimeZone, Overlap: string(m.Overlap), Paused: m.Paused}}
}
