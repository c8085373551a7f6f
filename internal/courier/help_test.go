package courier

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

func unixMilli(ms int64) time.Time { return time.UnixMilli(ms) }

// ticker paces a loop that polls, and fails the test when it takes too long.
func ticker(t *testing.T) func(left int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(tick.Stop)
	end := time.Now().Add(60 * time.Second)
	return func(left int) {
		t.Helper()
		if time.Now().After(end) {
			t.Fatalf("%d are left", left)
		}
		<-tick.C
	}
}
