package campaign

import (
	"context"
	"maps"
	"slices"
	"time"

	"netsplit/model"
)

// retryStore is how long the daemon waits before it tries again to store what the store did
// not take.
const retryStore = 5 * time.Second

// getCampaign is a campaign as it stands: the store may have had no room for its last state.
func (s *Service) getCampaign(id string) (model.Campaign, error) {
	s.mu.Lock()
	c, ok := s.unstored[id]
	s.mu.Unlock()
	if ok {
		return c, nil
	}
	return s.store.GetCampaign(id)
}

// listCampaigns is a page of campaigns as they stand. A campaign whose stored state does not
// match the filter is missing, even if its newest state does.
func (s *Service) listCampaigns(f model.CampaignFilter, limit int, cursor string) ([]model.Campaign, string, error) {
	s.mu.Lock()
	unstored := maps.Clone(s.unstored)
	s.mu.Unlock()
	out, next, err := s.store.ListCampaigns(f, limit, cursor)
	for i := range out {
		if c, ok := unstored[out[i].ID]; ok {
			out[i] = c
		}
	}
	if f.State != "" {
		out = slices.DeleteFunc(out, func(c model.Campaign) bool { return c.State != f.State })
	}
	return out, next, err
}

// putCampaign stores a campaign. The caller holds booking.
func (s *Service) putCampaign(c model.Campaign) error {
	put := s.put
	if put == nil {
		put = s.store.PutCampaign
	}
	err := put(c)
	if err == nil {
		s.forgetUnstored(c.ID)
	}
	return err
}

// forgetUnstored drops what is in memory of a campaign: the store has it now.
func (s *Service) forgetUnstored(campaign string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unstored, campaign)
}

// keepUnstored remembers a campaign that the store did not take, as on a full disk: whoever
// waits for its end must see it. retryUnstored stores it once it can.
func (s *Service) keepUnstored(c model.Campaign) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unstored == nil {
		s.unstored = map[string]model.Campaign{}
	}
	s.unstored[c.ID] = c
}

// retryUnstored stores every few seconds what the store did not take, until ctx ends. Close
// does so once more.
func (s *Service) retryUnstored(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryStore):
		}
		s.storeUnstored()
	}
}

func (s *Service) storeUnstored() {
	s.booking.Lock()
	defer s.booking.Unlock()
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.unstored))
	s.mu.Unlock()
	for _, c := range left {
		if err := s.putCampaign(c); err == nil {
			s.log.Info("a campaign's state is stored now", "campaign", c.ID, "state", c.State)
		}
	}
}
