package inproc

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
)

// Agents that end together share a scan of the processes, but none uses a scan
// that began before its end.
func TestLeftoversAreLookedForTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLeftoversTogether)
}

func testLeftoversTogether(t *testing.T) {
	const agents = 200
	var looks int
	began, goOn := make(chan struct{}), make(chan struct{})
	l := newLeftovers()
	l.look = func() (map[string]bool, error) {
		looks++
		if looks == 1 {
			close(began)
			<-goOn
			return nil, nil
		}
		return map[string]bool{"7": true}, nil
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if l.of("first") {
			t.Error("the first has left nothing")
		}
	})
	<-began
	found := make([]bool, agents)
	for i := range agents {
		wg.Go(func() { found[i] = l.of(strconv.Itoa(i)) })
	}
	synctest.Wait() // all of them wait for the next look
	close(goOn)
	wg.Wait()
	for i, f := range found {
		if f != (i == 7) {
			t.Errorf("agent %d: %v", i, f)
		}
	}
	if looks != 2 {
		t.Errorf("%d looks for %d agents", looks, agents)
	}
	l.look = func() (map[string]bool, error) { return nil, errors.New("no process table") }
	if !l.of("x") {
		t.Error("not known is not none")
	}
}
