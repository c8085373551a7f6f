package main

import (
	"context"
	"testing"

	"github.com/teamctl/teamctl/internal/courier"
)

// TestTrustOfOneThatEnds checks that the answer of a program counts which ends at once after it has
// written the answer down, and that one that ends without an answer has ended for the person.
func TestTrustOfOneThatEnds(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		reads := 0
		read := func(context.Context, string) (courier.Trust, error) {
			reads++
			return courier.Trust{Dir: t.TempDir(), Known: answers && reads > 1}, nil
		}
		got, code, over, err := askTrust(t.Context(), read, []string{"sh", "-c", "exit 3"}, nil)
		if err != nil || over == answers || got.Known != answers || over && code != 3 {
			t.Errorf("answered %v: %+v, status %d, over %v, %v", answers, got, code, over, err)
		}
	}
}
