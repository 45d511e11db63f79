package httpapi

import "sync"

// everywhere calls step for each partition, up to 8 at once, and returns the first error.
func (c *call) everywhere(step func(p int) error) error {
	errs := make([]error, c.q.Partitions())
	free := make(chan struct{}, 8)
	var group sync.WaitGroup
	for p := range errs {
		free <- struct{}{}
		group.Go(func() {
			errs[p] = step(p)
			<-free
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// warn logs keys that a call could not read or write.
func (c *call) warn(errs []string) {
	for _, text := range errs {
		c.server.log.Warn("A key cannot be read or written", "namespace", c.q.Namespace(), "error", text)
	}
}
