package control

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/strays"
)

// TestClientsLetGo: clients that are dropped without Close, as those of every look of a board, keep no
// connection to the supervisor.
func TestClientsLetGo(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var opened, closed atomic.Int64
	srv := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
			if s == http.StateClosed {
				closed.Add(1)
			}
		},
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-served
	})
	const looks = 20
	for range looks {
		var out struct{}
		if err := NewClient(socket).ask(t.Context(), "/v1/anything", struct{}{}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n < looks { // there are more if an answer took long and was asked after
		t.Fatalf("%d connections, want %d", n, looks)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for closed.Load() < opened.Load() {
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d connections are still open", opened.Load()-closed.Load(), opened.Load())
		case <-tick.C:
		}
	}
}
