package api

import "time"

// At gives a clock to a listener.
func (c ListenConfig) At(now func() time.Time) ListenConfig {
	c.now = now
	return c
}

// WithPatience sets how long a client may take for a piece of an answer and for an event.
func (c *Config) WithPatience(write, stream time.Duration) { c.writeTime, c.streamTime = write, stream }
