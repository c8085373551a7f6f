package opencode

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// A program that takes long to listen is asked as often as any other: only a request that timed
// out gives the next one more time.
func TestServerThatStartsIsNotWaitedForLonger(t *testing.T) {
	t.Parallel()
	r, _ := openCodeRig(t)
	s := &server{f: r.facts, report: r.Report, client: &http.Client{Transport: &http.Transport{}}, patience: 50 * time.Second}
	t.Cleanup(s.client.CloseIdleConnections)
	s.f.Link.URL = "http://127.0.0.1:0" // where nobody can listen
	if s.connection(t.Context()) || s.patience != 50*time.Second {
		t.Errorf("after a refusal it has %s", s.patience)
	}
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	s.f.Link.URL, s.patience = "http://"+mute.Addr().String(), 50*time.Millisecond
	if s.connection(t.Context()) || s.patience != 100*time.Millisecond {
		t.Errorf("after silence it has %s", s.patience)
	}
}
