package fileid

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAt: a file keeps its id when it is renamed, and no two files have one.
func TestAt(t *testing.T) {
	t.Parallel()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	for _, p := range []string{one, two} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := At(one)
	if was == "" || was == At(two) {
		t.Errorf("two files are %q and %q", was, At(two))
	}
	if err := os.Rename(one, two); err != nil {
		t.Fatal(err)
	}
	if At(two) != was || At(one) != "" || At("") != "" || Of(nil) != "" {
		t.Errorf("after the rename: %q, %q, want %q and nothing", At(two), At(one), was)
	}
}
