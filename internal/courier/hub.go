package courier

import (
	"path/filepath"
	"sync"

	"github.com/teamctl/teamctl/internal/dirwatch"
)

// hub signals writes to files. One hub serves all members; without kernel events it signals once a
// second.
type hub struct {
	dirs dirwatch.Hub

	mu    sync.Mutex
	stops map[chan struct{}]func()
}

func newHub() *hub { return &hub{stops: map[chan struct{}]func(){}} }

// Listen signals writes to one file, until leave is called. The file need not exist; its
// directory must.
func (f Facts) Listen(path string) (written <-chan struct{}, leave func(), err error) {
	return f.hub.listen(path)
}

// listen signals writes to one file. The file need not exist; its directory must.
func (h *hub) listen(path string) (<-chan struct{}, func(), error) {
	c := make(chan struct{}, 1)
	stop, err := h.dirs.Watch(filepath.Dir(path), func(e dirwatch.Event) {
		if e.Lost || e.Poll || filepath.Base(e.Name) == filepath.Base(path) {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops[c] = stop
	return c, func() { h.leave(c) }, nil
}

func (h *hub) leave(c chan struct{}) {
	h.mu.Lock()
	stop := h.stops[c]
	delete(h.stops, c)
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// close stops all listeners and waits for them.
func (h *hub) close() {
	h.mu.Lock()
	stops := h.stops
	h.stops = map[chan struct{}]func(){}
	h.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}
