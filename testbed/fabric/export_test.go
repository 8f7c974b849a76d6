package fabric

import "time"

// Every has rules renewed, and flow tables read back, more or less often; 0: as always.
func (c Config) Every(renew, check time.Duration) Config {
	c.renewEvery, c.checkEvery = renew, check
	return c
}
