package courier

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestHub(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]bool{"events": true, "none left": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			defer h.close()
			if !events {
				h.dirs.Open, h.dirs.Every = func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }, time.Millisecond
			}
			path := filepath.Join(t.TempDir(), "log")
			written, leave, err := h.listen(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-written:
			case <-time.After(5 * time.Minute):
				t.Error("no signal for a file that was written")
			}
			leave()
			leave() // twice
		})
	}
	if _, _, err := newHub().listen("/no/such/directory/log"); err == nil {
		t.Error("a directory that does not exist is watched")
	}
}
