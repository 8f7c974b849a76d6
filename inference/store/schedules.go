package store

import "netsplit/model"

// PutSchedule stores a schedule under its name.
func (x *Tx) PutSchedule(c model.Schedule) error {
	if err := checkID("schedule", c.Name); err != nil {
		return err
	}
	return x.put(bucketSchedules, key(c.Name), c)
}

// GetSchedule fails with model.ErrNotFound.
func (x *Tx) GetSchedule(name string) (model.Schedule, error) {
	return get[model.Schedule](x, bucketSchedules, "schedule", name)
}

// ListSchedules lists all of them by name.
func (x *Tx) ListSchedules() ([]model.Schedule, error) {
	return all[model.Schedule](x, bucketSchedules, nil)
}

// DeleteSchedule forgets a schedule; it fails with model.ErrNotFound.
func (x *Tx) DeleteSchedule(name string) error {
	if _, err := x.GetSchedule(name); err != nil {
		return err
	}
	return x.t.delete(bucketSchedules, key(name))
}

// PutSchedule is Tx.PutSchedule.
func (s *Store) PutSchedule(c model.Schedule) error {
	return s.Update(func(tx *Tx) error { return tx.PutSchedule(c) })
}

// GetSchedule is Tx.GetSchedule.
func (s *Store) GetSchedule(name string) (model.Schedule, error) {
	return view(s, func(tx *Tx) (model.Schedule, error) { return tx.GetSchedule(name) })
}

// ListSchedules is Tx.ListSchedules.
func (s *Store) ListSchedules() ([]model.Schedule, error) {
	return view(s, func(tx *Tx) ([]model.Schedule, error) { return tx.ListSchedules() })
}

// DeleteSchedule is Tx.DeleteSchedule.
func (s *Store) DeleteSchedule(name string) error {
	return s.Update(func(tx *Tx) error { return tx.DeleteSchedule(name) })
}
