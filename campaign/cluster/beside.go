package cluster

import "sync"

// beside runs functions side by side until it ends; it waits for those that run.
type beside struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

func (b *beside) run(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.all.Go(f)
	}
}

func (b *beside) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.all.Wait()
}
