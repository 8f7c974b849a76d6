package campaign

import (
	"context"

	"netsplit/model"
)

// startManual has manual partitions on the outside testbed, if there is one, and
// those taken up that a daemon left behind when it died.
func (s *Service) startManual() error {
	known, err := s.allPartitions()
	if err != nil {
		return err
	}
	return s.hand.Open(s.outside, known)
}

// CreatePartition cuts manually. It returns when the rules were sent; the
// partition is in force once nothing was seen to pass.
func (s *Service) CreatePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	return s.hand.Create(ctx, spec)
}

// EnsurePartition is CreatePartition, but one that exists under the name and is the same is
// returned as it is.
func (s *Service) EnsurePartition(ctx context.Context, spec model.PartitionSpec) (model.PartitionStatus, error) {
	return s.hand.Ensure(ctx, spec)
}

// DeletePartition heals a manual partition. Healing twice is harmless, and
// one that failed stays so. It returns when a packet passed again, or with what
// hinders it; then it may be called again.
func (s *Service) DeletePartition(ctx context.Context, name string) (model.PartitionStatus, error) {
	return s.hand.Delete(ctx, name)
}

// Partitions lists the manual partitions, newest first; those that stand are all on
// the first page, however old they are.
func (s *Service) Partitions(ctx context.Context, limit int, cursor string) ([]model.PartitionStatus, string, error) {
	return s.hand.List(ctx, limit, cursor)
}

// Partition returns one.
func (s *Service) Partition(ctx context.Context, name string) (model.PartitionStatus, error) {
	return s.hand.Get(ctx, name)
}

// Reset heals every manual partition and returns their names, sorted.
func (s *Service) Reset(ctx context.Context) ([]string, error) { return s.hand.Reset(ctx) }
