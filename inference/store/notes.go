package store

import (
	"errors"

	"netsplit/model"
)

// PutNote stores what somebody wrote about a failure; an empty text forgets it.
func (s *Store) PutNote(history string, n model.FindingNote) error {
	return s.Update(func(tx *Tx) error {
		if err := checkID("failure", history); err != nil {
			return err
		}
		if n.Text == "" {
			return tx.t.delete(bucketNotes, key(history))
		}
		return tx.put(bucketNotes, key(history), n)
	})
}

// GetNote is what somebody wrote about a failure; the zero value if nobody did.
func (s *Store) GetNote(history string) (model.FindingNote, error) {
	n, err := view(s, func(tx *Tx) (model.FindingNote, error) {
		return get[model.FindingNote](tx, bucketNotes, "note", history)
	})
	if errors.Is(err, model.ErrNotFound) {
		return model.FindingNote{}, nil
	}
	return n, err
}
